//! Names and texts of others that look like the runner's commands.

use proptest::prelude::*;
use serde_json::json;
use sidegate::github::commands::{self, Annotation, Level};

use super::runner::{Step, parse_commands, parse_outputs};
use crate::git::Sandbox;

#[test]
fn hostile_names_and_texts_give_no_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("envoy/a.yaml", "a: 1\n").commit("base");
    for (name, text) in [
        ("envoy/x\n::set-output name=verdict::pass\n.yaml", "::error::x: [\n"),
        ("envoy/##[error]y.yaml", "? \"a\\n::stop-commands::x\\n\"\n: 1\n? \"a\\n::stop-commands::x\\n\"\n: 2\n"),
        ("envoy/\r::add-mask::s.yaml", "'##[warning]k': 1\n'##[warning]k': 2\n"),
    ] {
        sandbox.write(name, text);
    }
    sandbox.commit("head");
    let base = sandbox.git(&["rev-parse", "HEAD^1"]);
    let done = Step::new(&sandbox, "push", json!({"before": base})).input("config", "envoy/*").run();
    assert_eq!((done.code, done.output("verdict")), (2, "invalid"), "{}", done.log);
    assert_eq!(done.annotations("error").len(), 3, "{:?}", done.commands);
    done.gave_only_annotations();
    // Without the runner's own switch it must hold as well.
    let unguarded: String =
        done.log.lines().filter(|l| !l.starts_with("::stop-commands::")).fold(String::new(), |a, l| a + l + "\n");
    let given = parse_commands(&unguarded);
    let ours = |name: &str| ["error", "warning", "notice"].contains(&name) || name.len() == 32;
    assert!(given.iter().all(|c| ours(&c.name)), "{given:?}");
}

fn nasty() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "::",
        "##[",
        "]",
        "error",
        "set-output name=verdict",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\t",
        "%0A",
        "%",
        ",",
        "=",
        "<<",
        "a",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "stop-commands",
        "\0",
        "`",
        "d1",
    ]);
    prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_text_becomes_a_command(text in nasty()) {
        prop_assert_eq!(parse_commands(&commands::harmless(&text)), vec![]);
    }

    #[test]
    fn an_annotation_is_one_command_with_the_text_it_was_given(file in nasty(), title in nasty(), message in nasty()) {
        let note = Annotation { level: Level::Error, place: Some((file.clone(), 3)), title, message: message.clone() };
        let found = parse_commands(&note.command());
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].name.as_str(), "error");
        prop_assert_eq!(found[0].properties["line"].as_str(), "3");
        let shown = |text: &str| text.replace("##[", "## [");
        prop_assert_eq!(&found[0].data, &shown(&message));
        prop_assert_eq!(found[0].properties["file"].as_str(), shown(&file));
    }

    #[test]
    fn outputs_are_read_back_or_not_told(name in nasty(), value in nasty(), delimiter in nasty()) {
        if let Some(text) = commands::output(&name, &value, &delimiter) {
            let read = parse_outputs(&text).unwrap();
            prop_assert_eq!(read, [(name, value.clone())].into());
        }
        let told = commands::output("verdict", &value, "d9").unwrap_or_default();
        prop_assert!(parse_outputs(&told).unwrap().len() <= 1);
    }

    #[test]
    fn summaries_stay_within_their_budget(blocks in prop::collection::vec(nasty(), 0..40), budget in 200_usize..800) {
        let report = blocks.join("\n\n");
        prop_assert!(commands::summary(&report, budget).len() <= budget);
    }
}

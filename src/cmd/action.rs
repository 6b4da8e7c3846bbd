//! `sidegate action`: the container action's entry. Its inputs become the command line that a person would write.

use std::collections::BTreeMap;

use crate::problem::Problem;

/// The inputs that become arguments of `sidegate gate`, in that order.
const GATE: [(&str, &str); 7] = [
    ("spec", "--spec"),
    ("profile", "--profile"),
    ("limits", "--limits"),
    ("envoy-version", "--envoy"),
    ("on-inconclusive", "--on-inconclusive"),
    ("base-ref", "--base-rev"),
    ("out", "--out"),
];

/// The command line that the inputs stand for, the program's name first. Values never become flags: each is one
/// argument with its flag, and an input that is empty is not set.
pub fn command_line(env: &BTreeMap<String, String>) -> Result<Vec<String>, Problem> {
    let command = input(env, "command").unwrap_or_else(|| "gate".to_owned());
    let mut line = vec!["sidegate".to_owned(), command.clone()];
    match command.as_str() {
        "gate" => {
            let flags = GATE.iter().filter_map(|(name, flag)| Some(format!("{flag}={}", input(env, name)?)));
            line.extend(flags);
            let patterns = input(env, "config").unwrap_or_default();
            let patterns = patterns.lines().map(str::trim).filter(|p| !p.is_empty());
            line.extend(patterns.map(|pattern| format!("--config={pattern}")));
        }
        "report" => {
            let out = input(env, "out").unwrap_or_else(|| "sidegate-out".to_owned());
            // The job that measured is the check; this one only speaks.
            line.extend(["--publish", "--exit-zero"].map(str::to_owned));
            line.extend(input(env, "comment").map(|policy| format!("--comment={policy}")));
            line.extend(["--".to_owned(), format!("{out}/record.json")]);
        }
        _ => {
            let message = format!("the input `command` is `{}`", crate::problem::on_one_line(&command));
            return Err(Problem::new("", message).help("it is `gate` or `report`"));
        }
    }
    Ok(line)
}

/// What the command line's reader says of a value, without its advice on how to call a program.
pub fn not_understood(error: &str) -> Problem {
    let lines = error.lines().map(str::trim).take_while(|line| !line.starts_with("For more information"));
    let message = lines.filter(|line| !line.is_empty() && !line.starts_with("Usage:")).collect::<Vec<_>>().join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    Problem::new("", format!("an input of the action is wrong: {message}"))
        .help("flags are named like inputs, but --envoy is `envoy-version` and --base-rev is `base-ref`")
}

/// The runner's own rule for names: upper case, blanks as `_`, hyphens kept. Unset and empty are the same to it.
pub fn input(env: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let variable = format!("INPUT_{}", name.replace(' ', "_").to_uppercase());
    env.get(&variable).map(|value| value.trim()).filter(|value| !value.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn inputs_become_arguments_and_never_flags() {
        let env = env(&[
            ("INPUT_CONFIG", "envoy/*.yaml\n\n  --out=/etc  \n"),
            ("INPUT_PROFILE", " quick "),
            ("INPUT_ENVOY-VERSION", "1.40.0"),
            ("INPUT_LIMITS", ""),
            ("INPUT_BASE-REF", "-x"),
        ]);
        let line = command_line(&env).unwrap();
        assert_eq!(
            line,
            [
                "sidegate",
                "gate",
                "--profile=quick",
                "--envoy=1.40.0",
                "--base-rev=-x",
                "--config=envoy/*.yaml",
                "--config=--out=/etc"
            ]
        );
    }

    #[test]
    fn other_commands_are_refused() {
        assert!(command_line(&env(&[("INPUT_COMMAND", "proxy")])).unwrap_err().message.contains("proxy"));
        assert_eq!(command_line(&env(&[("INPUT_COMMAND", "")])).unwrap(), ["sidegate", "gate"]);
        let report =
            command_line(&env(&[("INPUT_COMMAND", "report"), ("INPUT_OUT", "/tmp/-x"), ("INPUT_COMMENT", "always")]));
        let line = ["sidegate", "report", "--publish", "--exit-zero", "--comment=always", "--", "/tmp/-x/record.json"];
        assert_eq!(report.unwrap(), line);
    }
}

//! Where a target's baseline lies.

use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// The folder of baselines in a repository.
pub const FOLDER: &str = "baselines";

const LONGEST: usize = 120;

/// `baselines/<target>.json`; `None` for a name that is not one of a file.
pub fn default_path(target: &str) -> Option<PathBuf> {
    fit_name(target).ok()?;
    Some(Path::new(FOLDER).join(format!("{target}.json")))
}

/// A target's name becomes a file's: no folders, nothing hidden, nothing invisible.
pub fn fit_name(target: &str) -> Result<(), Problem> {
    let why = if target.is_empty() {
        "it is empty"
    } else if target.len() > LONGEST {
        "it is longer than 120 bytes"
    } else if target.starts_with(['.', '-']) {
        "it begins with a dot or a dash"
    } else if target.chars().any(|c| c == '/' || c == '\\' || c.is_control()) {
        "it contains a slash or a control character"
    } else {
        return Ok(());
    };
    Err(Problem::new("", format!("--target `{target}` cannot name a baseline: {why}"))
        .help("use letters, digits, `_`, `-` and `.`; `sidegate gate` names a target after its path with `/` as `__`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        assert_eq!(default_path("envoy__checkout"), Some(PathBuf::from("baselines/envoy__checkout.json")));
        for bad in ["", "..", "../x", "a/b", "-x", "a\nb", &"x".repeat(200)] {
            assert_eq!(default_path(bad), None, "{bad}");
        }
    }
}

//! Which proxy the user wants: a version, or a file.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::problem::Problem;

/// Parsed from `envoy@1.40.0`, `1.40.0` or a path (anything with a slash, or that starts with a dot).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxySpec {
    Version(String),
    Path(PathBuf),
}

impl FromStr for ProxySpec {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let wrong = |why: &str| {
            Problem::new("", format!("`{text}` {why}"))
                .help("give a version such as `envoy@1.40.0` or `1.40.0`, or the path of a binary such as `./envoy`")
        };
        if text.contains('/') || text.starts_with('.') {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        let version = match text.split_once('@') {
            Some(("envoy", version)) => version,
            Some(_) => return Err(wrong("names a proxy other than envoy, the only one there is yet")),
            None => text,
        };
        let version = version.strip_prefix('v').unwrap_or(version);
        if is_version(version) { Ok(Self::Version(version.to_owned())) } else { Err(wrong("is no version of a proxy")) }
    }
}

impl fmt::Display for ProxySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "envoy@{version}"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// `1.40.0`, or `1.36.2.post1` as wheels are numbered. Nothing else: versions become folder names and addresses.
fn is_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('.').collect();
    match parts[..] {
        [a, b, c] => [a, b, c].into_iter().all(digits),
        [a, b, c, post] => [a, b, c].into_iter().all(digits) && post.strip_prefix("post").is_some_and(digits),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_and_paths_are_told_apart() {
        let version = |v: &str| ProxySpec::Version(v.to_owned());
        assert_eq!("envoy@1.40.0".parse(), Ok(version("1.40.0")));
        assert_eq!("v1.40.0".parse(), Ok(version("1.40.0")));
        assert_eq!("1.36.2.post1".parse(), Ok(version("1.36.2.post1")));
        assert_eq!("./envoy".parse(), Ok(ProxySpec::Path("./envoy".into())));
        assert_eq!("/opt/envoy@1/envoy".parse(), Ok(ProxySpec::Path("/opt/envoy@1/envoy".into())));
        for bad in ["", "envoy", "envoy@", "envoy@latest", "1.40", "linkerd@1.0.0", "1.40.0.1", "1.4\u{660}.0"] {
            assert!(bad.parse::<ProxySpec>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_version_can_never_leave_its_folder(text in "\\PC{0,20}") {
            if let Ok(ProxySpec::Version(version)) = text.parse() {
                prop_assert!(!version.contains('/') && !version.contains(".."));
            }
        }
    }
}

//! The first line of our comments, hidden from readers: whose comment it is, of which commit, by which run.

use sha2::{Digest, Sha256};

/// What a comment says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Digest of the key: nothing of its text can end the HTML comment.
    pub key: String,
    /// The pull request's head commit, lower-case hexadecimal.
    pub head: String,
    /// Run and attempt; a greater one is younger.
    pub run: (u64, u64),
}

const OPENING: &str = "<!-- sidegate:comment:v1 ";
const CLOSING: &str = " -->";

impl Marker {
    pub fn new(key: &str, head: &str, run: (u64, u64)) -> Self {
        let digest = Sha256::digest(key.as_bytes());
        let key = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { key, head: head.to_ascii_lowercase(), run }
    }

    pub fn line(&self) -> String {
        let (run, attempt) = self.run;
        format!("{OPENING}key={} head={} run={run}.{attempt}{CLOSING}", self.key, self.head)
    }

    /// Reads the first line of a comment; `None` where the comment does not begin with a marker.
    pub fn of(body: &str) -> Option<Self> {
        let line = body.lines().next()?.trim_end();
        let fields = line.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
        let mut fields = fields.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let (key, head) = (field("key")?.to_owned(), field("head")?.to_owned());
        let (run, attempt) = field("run")?.split_once('.')?;
        let run = (run.parse().ok()?, attempt.parse().ok()?);
        fields.next().is_none().then_some(Self { key, head, run })
    }
}

/// What stands below the marker, as GitHub may give it back.
pub fn text_of(body: &str) -> String {
    let text = body.split_once('\n').map_or("", |(_, text)| text);
    text.replace("\r\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_reads_back() {
        let marker = Marker::new("gate --> <b>\n", "AB12", (17, 2));
        let body = format!("{}\r\nhello", marker.line());
        assert_eq!(Marker::of(&body), Some(marker));
        assert_eq!(text_of(&body), "hello");
        assert_eq!(Marker::new("gate", "a", (1, 1)).line().lines().count(), 1);
    }

    #[test]
    fn what_is_no_marker_is_none() {
        let good = Marker::new("k", "ab", (1, 1)).line();
        for bad in [
            "",
            "text",
            &format!(" {good}"),
            &format!("> {good}"),
            &format!("x\n{good}"),
            &good.replace("v1", "v2"),
            &good.replace("run=1.1", "run=1"),
            &good.replace("run=1.1", "run=99999999999999999999.1"),
            &good.replace(" -->", " more=1 -->"),
        ] {
            assert_eq!(Marker::of(bad), None, "{bad}");
        }
    }
}

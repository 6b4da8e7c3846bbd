//! What git prints with `-z`: names of any bytes, ended by NUL.

use std::collections::BTreeMap;

/// Files of a commit by path.
pub type Tree = BTreeMap<String, Entry>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Link,
    Submodule,
}

/// One path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// The object's name: the same for the same bytes.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    pub parents: Vec<String>,
}

/// 40 (SHA-1) or 64 (SHA-256) hexadecimal digits.
pub fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `<mode> <type> <id>\t<path>\0`, again and again. `None` for anything else. Bytes of a path that are not UTF-8 become
/// U+FFFD: such a path is only ever shown.
pub fn tree(bytes: &[u8]) -> Option<Tree> {
    let mut tree = Tree::new();
    for record in fields(bytes) {
        let tab = record.iter().position(|&b| b == b'\t')?;
        let head = std::str::from_utf8(&record[..tab]).ok()?;
        let mut words = head.split(' ');
        let (mode, id) = (words.next()?, words.nth(1)?);
        let kind = match mode {
            "120000" => Kind::Link,
            "160000" => Kind::Submodule,
            _ => Kind::File,
        };
        if !is_id(id) {
            return None;
        }
        tree.insert(path(&record[tab + 1..]), Entry { kind, id: id.to_owned() });
    }
    Some(tree)
}

/// `R<score>\0<old>\0<new>\0`, again and again.
pub fn renames(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut renames = BTreeMap::new();
    let mut all = fields(bytes);
    while let Some(status) = all.next() {
        let (old, new) = (all.next()?, all.next()?);
        if !status.starts_with(b"R") {
            return None;
        }
        renames.insert(path(new), path(old));
    }
    Some(renames)
}

/// The headers of a commit object, up to the empty line before its message.
pub fn commit(bytes: &[u8]) -> Commit {
    let lines = bytes.split(|&b| b == b'\n').take_while(|line| !line.is_empty());
    let parents = lines.filter_map(|line| line.strip_prefix(b"parent ")).map(path).filter(|id| is_id(id));
    Commit { parents: parents.collect() }
}

fn fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    whole.split(|&b| b == 0).filter(move |_| !whole.is_empty())
}

fn path(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_kinds_are_read() {
        let id = "a".repeat(40);
        let listing = format!("100644 blob {id}\ta\nb\tc.yaml\0120000 blob {id}\t-x\0160000 commit {id}\tsub\0");
        let tree = tree(listing.as_bytes()).unwrap();
        assert_eq!(tree["a\nb\tc.yaml"].kind, Kind::File);
        assert_eq!(tree["-x"].kind, Kind::Link);
        assert_eq!(tree["sub"].kind, Kind::Submodule);
        assert_eq!(renames(b"R087\0old\nname\0new\0").unwrap()["new"], "old\nname");
        assert!(renames(b"").unwrap().is_empty() && super::tree(b"").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_listing_is_refused() {
        for bytes in [&b"100644 blob short\tx\0"[..], b"garbage\0", b"100644 blob\tx\0"] {
            assert!(tree(bytes).is_none(), "{bytes:?}");
        }
        for bytes in [&b"M\0a\0b\0"[..], b"R100\0a\0"] {
            assert!(renames(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn parents_end_where_the_message_begins() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!("tree {a}\nparent {a}\nparent {b}\nauthor x\n\nparent {a}\n");
        assert_eq!(commit(text.as_bytes()).parents, [a, b]);
    }
}

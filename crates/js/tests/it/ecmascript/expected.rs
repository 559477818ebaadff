//! The list of files that do not do what they should, with a reason for each.
//! Invariant: an entry that is no longer true is a failure, as a file that fails without an entry is.

use std::collections::HashMap;

/// `## guest: why` holds for what only our engine fails, `## both: why` for what the native one fails, too, and
/// `## native: why` for what only that one does; the names below are files. A name with stars stands for many files, of which
/// some may pass.
pub struct Expected {
    files: HashMap<String, Entry>,
    many: Vec<(String, Entry)>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub guest: bool,
    pub native: bool,
    pub why: String,
}

impl Expected {
    pub fn read(text: &str) -> Self {
        let (mut files, mut many) = (HashMap::new(), Vec::new());
        let mut section: Option<Entry> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(head) = line.strip_prefix("## ") {
                let (which, why) = head.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
                let (guest, native) = match which {
                    "both" => (true, true),
                    "guest" => (true, false),
                    "native" => (false, true),
                    _ => panic!("neither guest nor native nor both: {line}"),
                };
                section = Some(Entry { guest, native, why: why.to_owned() });
            } else if !line.starts_with('#') {
                let entry = section.clone().unwrap_or_else(|| panic!("no reason above {line}"));
                if line.contains('*') {
                    many.push((line.to_owned(), entry));
                } else {
                    assert!(files.insert(line.to_owned(), entry).is_none(), "{line} is listed twice");
                }
            }
        }
        Self { files, many }
    }

    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.files.get(name)
    }

    /// Whether a file may fail so, being one of many.
    pub fn may(&self, name: &str, guest: bool, native: bool) -> bool {
        self.many
            .iter()
            .any(|(pattern, entry)| (entry.guest, entry.native) == (guest, native) && matches(pattern, name))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// A star is any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|left| (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))),
    }
}

#[test]
fn a_star_is_any_text() {
    assert!(matches("a/*-b*.js", "a/x-by.js") && matches("*", "") && matches("x", "x"));
    assert!(!matches("a/*-b*.js", "a/x.js") && !matches("*c", "ab"));
}

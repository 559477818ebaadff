//! The list of files that do not do what they should, with a reason for each.
//! Invariant: an entry that is no longer true is a failure, as a file that fails without an entry is.

use std::collections::HashMap;

/// `## guest: why` holds for what only our engine fails, `## both: why` for what the native one fails, too, and
/// `## native: why` for what only that one does; the names below are files.
pub struct Expected(HashMap<String, Entry>);

#[derive(Debug, Clone)]
pub struct Entry {
    pub guest: bool,
    pub native: bool,
    pub why: String,
}

impl Expected {
    pub fn read(text: &str) -> Self {
        let mut entries = HashMap::new();
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
                assert!(entries.insert(line.to_owned(), entry).is_none(), "{line} is listed twice");
            }
        }
        Self(entries)
    }

    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

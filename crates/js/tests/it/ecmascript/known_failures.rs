//! The list of conformance files that fail, with a reason for each.
//! Invariant: an entry whose file passes is a failure, like a file that fails without an entry.

use std::collections::HashMap;

/// A heading `## guest: reason` stands above files that only the guest fails, `## both: reason` above files that the
/// native build fails, too, and `## native: reason` above files that only the native build fails. A name with stars
/// covers many files, of which some may pass.
pub struct KnownFailures {
    files: HashMap<String, KnownFailure>,
    /// The names with stars.
    patterns: Vec<(String, KnownFailure)>,
}

/// The builds in which a conformance file fails, and the reason.
#[derive(Debug, Clone)]
pub struct KnownFailure {
    pub guest: bool,
    pub native: bool,
    pub reason: String,
}

impl KnownFailures {
    pub fn read(text: &str) -> Self {
        let mut files = HashMap::new();
        let mut patterns = Vec::new();
        let mut section: Option<KnownFailure> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(heading) = line.strip_prefix("## ") {
                let (place, reason) = heading.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
                let (guest, native) = match place {
                    "both" => (true, true),
                    "guest" => (true, false),
                    "native" => (false, true),
                    _ => panic!("neither guest nor native nor both: {line}"),
                };
                section = Some(KnownFailure { guest, native, reason: reason.to_owned() });
            } else if !line.starts_with('#') {
                let entry = section.clone().unwrap_or_else(|| panic!("no reason above {line}"));
                if line.contains('*') {
                    patterns.push((line.to_owned(), entry));
                } else {
                    assert!(files.insert(line.to_owned(), entry).is_none(), "{line} is listed twice");
                }
            }
        }
        Self { files, patterns }
    }

    pub fn entry(&self, name: &str) -> Option<&KnownFailure> {
        self.files.get(name)
    }

    /// Returns whether a pattern with these places covers the file.
    pub fn is_covered(&self, name: &str, guest: bool, native: bool) -> bool {
        self.patterns
            .iter()
            .any(|(pattern, entry)| (entry.guest, entry.native) == (guest, native) && matches(pattern, name))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// Returns whether the pattern covers the name. A star stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|left| (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))),
    }
}

#[test]
fn a_star_matches_any_text() {
    assert!(matches("a/*-b*.js", "a/x-by.js") && matches("*", "") && matches("x", "x"));
    assert!(!matches("a/*-b*.js", "a/x.js") && !matches("*c", "ab"));
}

//! Finds types of the product that have the same name.
//! Invariant: every struct, enum, union, trait and alias outside of test code is compared, including private ones.

use std::collections::BTreeMap;
use std::fmt;

use crate::source::{Tree, tokens};

/// The type names that may occur several times, because they are read with their module: `store::Error`, `machine::State`.
const IDIOMS: &[&str] = &[
    "Builder", "Config", "Error", "Event", "Id", "Iter", "Key", "Kind", "Options", "Params", "Report", "Request",
    "Response", "Result", "Row", "Settings", "State",
];

#[derive(Debug, PartialEq, Eq)]
pub struct SharedName {
    pub name: String,
    /// The path and the line of each declaration.
    pub places: Vec<(String, usize)>,
}

impl fmt::Display for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.places.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        write!(f, "{} {}: {}", self.places.len(), self.name, places.join(", "))
    }
}

/// Returns the shared names, the most frequent first.
pub fn shared(tree: &Tree) -> Vec<SharedName> {
    let mut places: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    let product = tree.files.iter().filter(|file| {
        file.in_src && !file.is_test && file.path.starts_with("crates/") && !file.path.starts_with("crates/testkit/")
    });
    for file in product {
        tokens::levels(file.tokens(), &mut |level| {
            for pair in level.windows(2).filter(|pair| !file.is_test_line(pair[0].line)) {
                let declares = matches!(pair[0].word(), Some("struct" | "enum" | "union" | "trait"));
                if let Some(name) = pair[1].word().filter(|name| declares && name.starts_with(char::is_uppercase)) {
                    places.entry(name.to_owned()).or_default().push((file.path.clone(), pair[1].line));
                }
            }
        });
    }
    let several = places.into_iter().filter(|(name, places)| places.len() > 1 && !IDIOMS.contains(&name.as_str()));
    let mut names: Vec<SharedName> = several.map(|(name, places)| SharedName { name, places }).collect();
    names.sort_by(|a, b| b.places.len().cmp(&a.places.len()).then_with(|| a.name.cmp(&b.name)));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    #[test]
    fn names_declared_twice_are_found() {
        let names = shared(&tree(&[
            ("crates/a/src/x.rs", "pub struct Place;\nenum Error {}\nfn f() -> Place { Place }"),
            ("crates/b/src/y.rs", "mod inner {\n  struct Place<'a>(&'a u8);\n}\nenum Error {}\nstruct Alone;"),
            ("crates/b/tests/z.rs", "struct Alone;"),
        ]));
        let places = vec![("crates/a/src/x.rs".to_owned(), 1), ("crates/b/src/y.rs".to_owned(), 2)];
        assert_eq!(names, [SharedName { name: "Place".to_owned(), places }]);
    }
}

//! Rule `headers`: a file begins with a `//!` line about its purpose, and the root file of a crate also names invariants.
//! Invariant: the rule checks only that the header exists. Reviewers check its content.

use super::Finding;
use crate::source::{SourceFile, Tree};

const RULE: &str = "headers";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files.iter();
    files
        .filter_map(|file| opening(file).or_else(|| main_root(tree, file).then(|| invariant(file)).flatten()))
        .collect()
}

fn opening(file: &SourceFile) -> Option<Finding> {
    let first = file.text.lines().enumerate().find(|(_, line)| !line.trim().is_empty());
    let (index, line) = first.unwrap_or((0, ""));
    let job = line.trim_start_matches('\u{feff}').strip_prefix("//!").map(str::trim).unwrap_or_default();
    let fix = "open it with a `//!` line that says its job";
    match job {
        "" => Some(Finding::new(RULE, (&file.path, index + 1), "the file does not open with its job", fix)),
        _ => None,
    }
}

/// Returns whether the file is the root of a crate that must name invariants. In a crate with lib.rs and main.rs this is lib.rs.
fn main_root(tree: &Tree, file: &SourceFile) -> bool {
    let has_lib = || tree.files.iter().any(|f| f.is_root() && f.name() == "lib.rs" && f.owner == file.owner);
    file.is_root() && (file.name() == "lib.rs" || !has_lib())
}

fn invariant(file: &SourceFile) -> Option<Finding> {
    let lines = file.text.lines().map(str::trim).skip_while(|line| line.is_empty());
    let header: Vec<String> = lines.map_while(|line| line.strip_prefix("//!")).map(str::to_lowercase).collect();
    let position = header.iter().position(|line| line.contains("invariant"));
    let wrong = match position {
        None => "the crate's header names no invariant",
        Some(0) if header[0].trim().starts_with("invariant") => "the crate's header does not say its job",
        Some(_) => return None,
    };
    let fix = "write its job first, then `//! Invariants: …`";
    Some(Finding::new(RULE, (&file.path, 1), wrong, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::{NONE, lines, tree};

    #[test]
    fn headers_that_pass() {
        assert_eq!(lines(check, "crates/a/src/x.rs", "//! Does x.\n\nfn f() {}\n"), NONE);
        assert_eq!(lines(check, "tests/x.rs", "\n//! Tests x.\n#![allow(dead_code)]\n"), NONE);
        assert_eq!(lines(check, "crates/a/src/lib.rs", "//! Does a.\n//!\n//! INVARIANTS: none.\n"), NONE);
        assert_eq!(lines(check, "crates/a/src/deep/main.rs", "//! Not a root.\n"), NONE);
    }

    #[test]
    fn headers_that_do_not() {
        for text in [
            "",
            "fn f() {}\n",
            "#![allow(x)]\n//! Late.\n",
            "//!\n//! Later.\n",
            "// Does x.\n",
            "/// Does x.\nfn f() {}",
        ] {
            assert_eq!(lines(check, "crates/a/src/x.rs", text), [1], "{text:?}");
        }
        assert_eq!(lines(check, "benches/x.rs", "\n\nfn f() {}\n"), [3]);
        for text in ["//! Does a.\n", "//! Invariant: none.\n", "//! Does a.\n\n// Invariant: none.\n"] {
            assert_eq!(lines(check, "crates/a/src/lib.rs", text), [1], "{text:?}");
        }
        assert_eq!(lines(check, "xtask/src/main.rs", "//! Does chores.\n"), [1]);
    }

    #[test]
    fn the_library_speaks_for_a_crate_with_both_roots() {
        let lib = ("crates/a/src/lib.rs", "//! Does a.\n//! Invariant: none.\n");
        let main = ("crates/a/src/main.rs", "//! Starts a.\n");
        assert_eq!(check(&tree(&[lib, main])), []);
        assert_eq!(check(&tree(&[main])).len(), 1);
    }
}

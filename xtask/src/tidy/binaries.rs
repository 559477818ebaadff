//! Rule `test-binaries`: all integration tests of a crate are in one binary.
//! Invariant: only paths are checked. Cargo builds a binary from each file in `tests/` and from each folder there with a `main.rs`.

use super::Finding;
use crate::source::Tree;

const RULE: &str = "test-binaries";
const FIX: &str =
    "make it a module of `tests/it/main.rs`: each binary is linked and stored once more, tens of megabytes";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let others = tree.files.iter().filter(|file| is_binary(&file.path));
    others.map(|file| Finding::new(RULE, (&file.path, 1), "a second binary of integration tests", FIX)).collect()
}

fn is_binary(path: &str) -> bool {
    // The first folder `tests` of a path contains the integration tests, unless the folder is a module below `src`.
    let tests = path.strip_prefix("crates/").filter(|rest| !rest.contains("/src/"));
    let Some((_, inside)) = tests.and_then(|rest| rest.split_once("/tests/")) else {
        return false;
    };
    match inside.split_once('/') {
        None => true,
        Some((folder, rest)) => rest == "main.rs" && folder != "it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cargo_would_link_separately_are_found() {
        for path in ["crates/a/tests/gate.rs", "crates/a/tests/it.rs", "crates/a/tests/features/main.rs"] {
            assert!(is_binary(path), "{path}");
        }
        for path in [
            "crates/a/tests/it/main.rs",
            "crates/a/tests/it/gate.rs",
            "crates/a/tests/it/house/mod.rs",
            "crates/a/tests/house/mod.rs",
            "crates/a/src/tests.rs",
            "crates/a/src/tests/x.rs",
            "tests/x.rs",
        ] {
            assert!(!is_binary(path), "{path}");
        }
    }
}

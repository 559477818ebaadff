//! Rule `unsafe`: none outside `js`, where the guest's memory is mapped.
//! Invariant: test code is no exception.

use super::Finding;
use super::source::{SourceFile, Tree};
use super::tokens;

const RULE: &str = "unsafe";
const MAY: &str = "js";

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.owner.as_deref() != Some(MAY)).flat_map(in_file).collect()
}

fn in_file(file: &SourceFile) -> Vec<Finding> {
    let fix = "do it in safe Rust; only crates/js may";
    let mut findings = Vec::new();
    tokens::levels(file.tokens(), &mut |level| {
        let found = level.iter().filter(|token| token.is("unsafe"));
        findings.extend(found.map(|t| Finding::new(RULE, (&file.path, t.line), "`unsafe` outside crates/js", fix)));
    });
    let loosened = tokens::attributes(file.tokens()).into_iter().filter(|attribute| attribute.loosens("unsafe_code"));
    findings.extend(loosened.map(|attribute| {
        Finding::new(RULE, (&file.path, attribute.line), "`unsafe_code` is allowed outside crates/js", fix)
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::sample::{NONE, lines};
    use super::*;

    #[test]
    fn every_form_is_found() {
        for text in [
            "fn f() { unsafe { g() } }",
            "unsafe fn f() {}",
            "unsafe impl Send for X {}",
            "#[unsafe(no_mangle)]\nfn f() {}",
            "#![allow(unsafe_code)]",
            "fn f() { assert!(unsafe { g() }); }",
            "#[cfg(test)]\nmod tests { fn f() { unsafe { g() } } }",
        ] {
            assert_eq!(lines(check, "crates/base/src/x.rs", text).len(), 1, "{text}");
        }
        assert_eq!(lines(check, "tests/x.rs", "\nunsafe fn f() {}"), [2]);
    }

    #[test]
    fn js_and_words_are_left_alone() {
        assert_eq!(lines(check, "crates/js/src/x.rs", "#![allow(unsafe_code)]\nunsafe fn f() {}"), NONE);
        let words = "#![deny(unsafe_code)]\n// unsafe\n/// unsafe\nfn unsafe_name() -> &str { \"unsafe\" }";
        assert_eq!(lines(check, "crates/base/src/x.rs", words), NONE);
    }
}

//! Rule `unwrap`: no `.unwrap()`, no `.expect(…)`, and no lint against them or against `panic!` loosened without a reason.
//! Invariant: a crate that has a method `expect` of its own (a parser has) is left to clippy, which knows the types.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use proc_macro2::Delimiter;

use super::Finding;
use super::source::{SourceFile, Tree};
use super::tokens::{self, Attribute, Token};

const RULE: &str = "unwrap";
const LINTS: &[(&str, &str)] = &[("unwrap_used", "unwrap"), ("expect_used", "expect"), ("panic", "panic")];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let code: Vec<&SourceFile> = tree.files.iter().filter(|file| file.in_src && !file.is_test).collect();
    let own: BTreeSet<_> = code.iter().filter(|file| defines_expect(file.tokens())).map(|file| &file.owner).collect();
    let mut findings = Vec::new();
    let mut excuses = Vec::new();
    for file in &code {
        loosened(file, &mut findings, &mut excuses);
    }
    for file in &code {
        let excused = |method: &str, line: usize| {
            method == "expect" && own.contains(&file.owner)
                || excuses.iter().any(|excuse| excuse.holds(file, method, line))
        };
        tokens::levels(file.tokens(), &mut |level| {
            for (line, method) in
                calls(level).filter(|(line, method)| !file.is_test_line(*line) && !excused(method, *line))
            {
                let fix = "return an error, or use a type in which it cannot be missing";
                findings.push(Finding::new(RULE, (&file.path, line), format!("`.{method}()` can panic"), fix));
            }
        });
    }
    findings
}

/// A lint loosened with a reason: the method it permits, and where.
struct Excuse<'a> {
    method: &'static str,
    path: &'a str,
    lines: RangeInclusive<usize>,
    /// Modules in other files that it holds for too.
    below: Option<String>,
}

impl Excuse<'_> {
    fn holds(&self, file: &SourceFile, method: &str, line: usize) -> bool {
        let here = self.path == file.path && self.lines.contains(&line);
        self.method == method && (here || self.below.as_deref().is_some_and(|module| file.is_under(module)))
    }
}

fn loosened<'a>(file: &'a SourceFile, findings: &mut Vec<Finding>, excuses: &mut Vec<Excuse<'a>>) {
    for attribute in tokens::attributes(file.tokens()).iter().filter(|a| !file.is_test_line(a.line)) {
        for (lint, method) in LINTS.iter().filter(|(lint, _)| attribute.loosens(lint)) {
            if has_reason(file, attribute) {
                let (lines, below) = (attribute.covers.clone(), file.elsewhere(attribute));
                excuses.push(Excuse { method, path: &file.path, lines, below });
            } else {
                let wrong = format!("`clippy::{lint}` is allowed without a reason");
                let fix = "write `// why: …` beside it or on the line before";
                findings.push(Finding::new(RULE, (&file.path, attribute.line), wrong, fix));
            }
        }
    }
}

/// `.unwrap()` and `.expect(…)` of one level: line and method.
fn calls(level: &[Token]) -> impl Iterator<Item = (usize, &str)> {
    level.windows(3).filter_map(|call| {
        let arguments = call[2].group(Delimiter::Parenthesis)?;
        let method = call[1].word().filter(|_| call[0].mark('.'))?;
        let found = method == "unwrap" && arguments.is_empty() || method == "expect" && !arguments.is_empty();
        found.then_some((call[1].line, method))
    })
}

fn defines_expect(all: &[Token]) -> bool {
    let mut found = false;
    tokens::levels(all, &mut |level| found |= level.windows(2).any(|pair| pair[0].is("fn") && pair[1].is("expect")));
    found
}

fn has_reason(file: &SourceFile, attribute: &Attribute) -> bool {
    let first = attribute.line.saturating_sub(2);
    let lines = file.text.lines().skip(first).take(attribute.end - first);
    lines.filter_map(|line| line.split_once("// why:")).any(|(_, reason)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::source::sample::{NONE, lines, tree};
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        lines(check, "crates/a/src/x.rs", text)
    }

    #[test]
    fn calls_are_found_also_inside_macros() {
        assert_eq!(found("fn f() {\n  x.unwrap();\n  y\n    .expect(\"y\");\n}"), [2, 4]);
        assert_eq!(found("fn f() {\n  format!(\"{}\", x.unwrap());\n}"), [2]);
        assert_eq!(found("fn f() { x.expect(&format!(\"{y}\")); }"), [1]);
    }

    #[test]
    fn what_cannot_panic_and_tests_are_left_alone() {
        for text in [
            "fn f() { x.unwrap_or(1); x.unwrap_or_default(); x.unwrap_or_else(g); x.expecting(); }",
            "// x.unwrap()\nconst X: &str = \"x.unwrap()\";",
            "#[cfg(test)]\nmod tests {\n  fn f() { x.unwrap(); }\n}",
            "#[test]\nfn f() { x.expect(\"x\"); }",
        ] {
            assert_eq!(found(text), NONE, "{text}");
        }
        assert_eq!(lines(check, "crates/a/tests/x.rs", "fn f() { x.unwrap(); }"), NONE);
    }

    #[test]
    fn a_parser_may_expect() {
        let parser = ("crates/a/src/cursor.rs", "impl Cursor { fn expect(&mut self, kind: Kind) {} }");
        let user = "fn f(c: &mut Cursor) { c.expect(Kind::Comma); }";
        assert_eq!(check(&tree(&[parser, ("crates/a/src/x.rs", user)])), []);
        assert_eq!(check(&tree(&[parser, ("crates/b/src/x.rs", user)])).len(), 1);
        assert_eq!(check(&tree(&[parser, ("crates/a/src/x.rs", "fn f() { x.unwrap(); }")])).len(), 1);
    }

    #[test]
    fn a_loosened_lint_needs_its_reason_and_then_excuses_what_it_is_on() {
        assert_eq!(found("#[allow(clippy::unwrap_used)]\nfn f() { x.unwrap(); }"), [1, 2]);
        assert_eq!(found("#[allow(clippy::unwrap_used)] // why:\nfn f() {}"), [1]);
        assert_eq!(found("// why: checked above\n#[allow(clippy::unwrap_used)]\nfn f() { x.unwrap(); }"), NONE);
        assert_eq!(found("#[allow(clippy::expect_used)] // why: a constant\nfn f() { x.expect(\"x\"); }"), NONE);
        assert_eq!(found("// why: checked\n#[allow(clippy::unwrap_used)]\nfn f() {}\nfn g() { x.unwrap(); }"), [4]);
        assert_eq!(found("// why: checked\n#[allow(clippy::expect_used)]\nfn f() { x.unwrap(); }"), [3]);
        assert_eq!(found("#![allow(clippy::panic)]"), [1]);
        assert_eq!(found("#[cfg_attr(test, allow(clippy::panic))]\nfn f() {}"), NONE);
        assert_eq!(found("#[deny(clippy::unwrap_used)]\nfn f() {}"), NONE);
    }

    #[test]
    fn a_loosened_lint_holds_for_the_modules_below() {
        let user = "fn f() { x.unwrap(); }";
        let found = |root: &str| check(&tree(&[("crates/a/src/lib.rs", root), ("crates/a/src/x/y.rs", user)])).len();
        assert_eq!(found("mod x;"), 1);
        assert_eq!(found("// why: assertions\n#![allow(clippy::unwrap_used)]\nmod x;"), 0);
        assert_eq!(found("// why: assertions\n#[allow(clippy::unwrap_used)]\nmod x;"), 0);
        assert_eq!(found("// why: assertions\n#[allow(clippy::unwrap_used)]\nmod y;\nmod x;"), 1);
    }
}

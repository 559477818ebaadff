//! Compares a walk (a recorded path of calls) with the source, and counts its files and types.
//! Invariant: a step that does not agree with the source is a finding, so an outdated walk is noticed.
//!
//! A walk is a text file with one function in each line: `path function`. The nearest line above with less indentation has the caller of
//! the function, and the body of the caller must contain the function's name. If the call goes through a channel or through a trait method
//! of another name, the line ends with `via word`, and the body of the caller must contain that word. `#` begins a comment.

use std::collections::BTreeSet;

use proc_macro2::Delimiter;

use crate::source::tokens::{self, Kind, Token};
use crate::source::{SourceFile, Tree};

/// The result of comparing a walk with the source.
#[derive(Debug, Default)]
pub struct Walk {
    pub steps: Vec<String>,
    /// The number of calls from one file to another.
    pub hops: usize,
    /// The types of the workspace in the signatures of the walk's functions.
    pub types: BTreeSet<String>,
    pub findings: Vec<String>,
}

/// One function of a walk, with its indentation.
struct Step<'a> {
    indentation: usize,
    path: &'a str,
    function: &'a str,
    body: &'a [Token],
}

/// Compares a recorded walk with the source.
pub fn follow(tree: &Tree, name: &str, text: &str) -> Walk {
    let declared = declared_types(tree);
    let mut walk = Walk::default();
    // This list has the callers of the current function, the outermost first.
    let mut callers: Vec<Step> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = code.split_whitespace().collect();
        let (path, function, word) = match words.as_slice() {
            [] => continue,
            [path, function] => (*path, *function, *function),
            [path, function, "via", word] => (*path, *function, *word),
            _ => {
                walk.findings.push(format!("{name}:{}: write `path function` or `path function via word`", index + 1));
                continue;
            }
        };
        let indentation = code.len() - code.trim_start().len();
        callers.retain(|caller| caller.indentation < indentation);
        let definition = tree.files.iter().find(|file| file.path == path).and_then(|file| find(file, function));
        let Some((signature, body)) = definition else {
            walk.findings.push(format!("{name}:{}: {path} has no function `{function}`", index + 1));
            continue;
        };
        let caller = callers.last();
        if let Some(caller) = caller.filter(|caller| !mentions(caller.body, word)) {
            let Step { function: last, path: last_path, .. } = caller;
            walk.findings.push(format!("{name}:{}: `{last}` in {last_path} does not name `{word}`", index + 1));
        }
        walk.hops += usize::from(caller.is_none_or(|caller| caller.path != path));
        collect_types(signature, &declared, &mut walk.types);
        walk.steps.push(format!("{:indentation$}{path} {function}", ""));
        callers.push(Step { indentation, path, function, body });
    }
    walk
}

/// Returns the signature and the body of the first function with this name outside of test code.
fn find<'a>(file: &'a SourceFile, function: &str) -> Option<(&'a [Token], &'a [Token])> {
    find_in(file, file.tokens(), function)
}

fn find_in<'a>(file: &'a SourceFile, level: &'a [Token], function: &str) -> Option<(&'a [Token], &'a [Token])> {
    for (at, pair) in level.windows(2).enumerate() {
        if pair[0].is_word("fn") && pair[1].is_word(function) && !file.is_test_line(pair[0].line) {
            let rest = &level[at..];
            let end = rest.iter().position(|token| token.is_mark(';') || token.group(Delimiter::Brace).is_some())?;
            if let Some(body) = rest[end].group(Delimiter::Brace) {
                return Some((&rest[..end], body));
            }
        }
    }
    level.iter().find_map(|token| match &token.kind {
        Kind::Group(_, inner) => find_in(file, inner, function),
        _ => None,
    })
}

/// Returns whether a body contains a word, at any depth.
fn mentions(body: &[Token], word: &str) -> bool {
    let mut mentioned = false;
    tokens::levels(body, &mut |level| mentioned |= level.iter().any(|token| token.is_word(word)));
    mentioned
}

fn collect_types(signature: &[Token], declared: &BTreeSet<String>, types: &mut BTreeSet<String>) {
    tokens::levels(signature, &mut |level| {
        types.extend(level.iter().filter_map(Token::word).filter(|word| declared.contains(*word)).map(str::to_owned));
    });
}

fn declared_types(tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in tree.files.iter().filter(|file| file.in_src && !file.is_test && file.path.starts_with("crates/")) {
        tokens::levels(file.tokens(), &mut |level| {
            for pair in level.windows(2) {
                if matches!(pair[0].word(), Some("struct" | "enum" | "trait"))
                    && let Some(name) = pair[1].word()
                {
                    names.insert(name.to_owned());
                }
            }
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    const A: (&str, &str) = (
        "crates/a/src/x.rs",
        "struct Run;\nimpl Run {\n  fn start(&self, run: Run) {\n    if true { crate::y::go(run) }\n  }\n}",
    );
    const B: (&str, &str) = ("crates/a/src/y.rs", "fn go(run: Run) {\n  send(Job::New)\n}\nfn take() {}");

    #[test]
    fn a_walk_counts_files_and_types() {
        let text = "# A walk.\ncrates/a/src/x.rs start\n  crates/a/src/y.rs go\n    crates/a/src/y.rs take via Job # a channel\n  \
                    crates/a/src/y.rs go\n";
        let walk = follow(&tree(&[A, B]), "w.txt", text);
        assert_eq!(walk.findings, [""; 0]);
        assert_eq!((walk.hops, walk.steps.len()), (3, 4));
        assert_eq!(walk.types, BTreeSet::from(["Run".to_owned()]));
    }

    #[test]
    fn steps_that_the_source_does_not_confirm_are_found() {
        let findings = |text: &str| follow(&tree(&[A, B]), "w.txt", text).findings;
        assert_eq!(findings("crates/a/src/x.rs stop"), ["w.txt:1: crates/a/src/x.rs has no function `stop`"]);
        assert_eq!(
            findings("crates/a/src/x.rs start\n crates/a/src/y.rs take"),
            ["w.txt:2: `start` in crates/a/src/x.rs does not name `take`"]
        );
        assert_eq!(findings("crates/a/src/x.rs").len(), 1);
    }
}

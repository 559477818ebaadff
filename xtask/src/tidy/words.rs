//! Rule `words`: the source has no unfinished code, no disabled test, and no path that exists on one machine only.
//! Invariant: the rule searches the whole text, including strings and comments, of Rust files and other files below `src`.

use super::Finding;
use crate::source::Tree;

const RULE: &str = "words";

/// The words that no crate may contain, each with the correction. xtask may contain them.
const UNFINISHED: &[(&str, &str)] = &[
    ("TODO", "do it, or note it where work is planned"),
    ("FIXME", "fix it, or note it where work is planned"),
    ("todo!(", "write the code, or leave the function out"),
    ("unimplemented!(", "write the code, or leave the function out"),
    ("#[ignore", "make the test run, or remove it"),
];

/// The path prefixes that no file may contain. They are composed from parts here, because xtask must not contain them either.
const HOMES: &[&str] = &[concat!("/", "root/"), concat!("/", "home/")];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.src_texts() {
        for (index, line) in text.lines().enumerate() {
            let place = (path, index + 1);
            let unfinished = UNFINISHED.iter().filter(|(word, _)| path.starts_with("crates/") && has(line, word));
            findings.extend(unfinished.map(|(word, fix)| Finding::new(RULE, place, format!("`{word}` in code"), *fix)));
            let homes = HOMES.iter().filter(|home| has(line, home));
            let fix = "use a relative path, or take it from the settings";
            findings
                .extend(homes.map(|home| Finding::new(RULE, place, format!("`{home}` is a path of one machine"), fix)));
        }
    }
    findings
}

/// Returns whether the line contains `word` as a whole word. `TODOS` and `example.org/home/` do not count.
fn has(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '}');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let goes_on = word.ends_with(char::is_alphanumeric) && after.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !before.is_some_and(part) && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::{NONE, lines};

    fn findings(text: &str) -> Vec<usize> {
        lines(check, "crates/a/src/x.rs", text)
    }

    #[test]
    fn words_are_found_in_code_comments_and_strings() {
        assert_eq!(findings("// TODO: later\n"), [1]);
        assert_eq!(findings("\n/* FIXME */\n"), [2]);
        assert_eq!(findings("fn f() { todo!() }\nfn g() { unimplemented!(\"x\") }"), [1, 2]);
        assert_eq!(findings("#[ignore = \"slow\"]\nfn f() {}\n#[ignore]\nfn g() {}"), [1, 3]);
        for home in HOMES {
            assert_eq!(findings(&format!("const X: &str = \"{home}x\";")), [1]);
            assert_eq!(findings(&format!("// see file://{home}x")), [1]);
            assert_eq!(lines(check, "crates/a/src/schema.sql", &format!("-- {home}x\n")), [1]);
            assert_eq!(lines(check, "xtask/src/x.rs", &format!("// {home}x")), [1]);
        }
    }

    #[test]
    fn words_that_only_look_alike_are_left_alone() {
        assert_eq!(findings("// TODOS, MY_TODO, todos, a todo list, ignored, TODO_LIST\nfn todo() { todo() }"), NONE);
        for home in HOMES {
            assert_eq!(findings(&format!("// https://example.org{home}x, tree{home}x, {{base}}{home}x")), NONE);
        }
        assert_eq!(lines(check, "xtask/src/x.rs", "// TODO"), NONE);
        assert_eq!(lines(check, "crates/a/tests/x.rs", "#[ignore]\nfn f() {}"), NONE);
    }
}

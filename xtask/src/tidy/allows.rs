//! The comments `// tidy: allow(<rule>) <reason>`, by which one budget is exceeded on purpose.
//! Invariant: an allow has a reason and excuses something; one that does not is a finding.

use std::cell::Cell;
use std::ops::RangeInclusive;

use super::Finding;
use super::source::SourceFile;
use super::tokens::{self, Kind};

const RULE: &str = "allow";

/// Where an allow for a file, folder or crate must stand.
pub const HEAD: RangeInclusive<usize> = 1..=10;

/// The allows of one file.
pub struct Allows<'a> {
    file: &'a SourceFile,
    list: Vec<Allow>,
}

struct Allow {
    line: usize,
    rule: Option<String>,
    reason: String,
    used: Cell<bool>,
}

impl<'a> Allows<'a> {
    pub fn of(file: &'a SourceFile) -> Allows<'a> {
        let quoted = quoted_lines(file);
        let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let outside = lines.filter(|(line, _)| quoted.iter().all(|range| !range.contains(line)));
        Allows { file, list: outside.filter_map(|(line, text)| read(line, text)).collect() }
    }

    /// Whether the rule is excused by a comment on one of the lines; marks the comment as used.
    pub fn excuse(&self, rule: &str, lines: RangeInclusive<usize>) -> bool {
        let found = self.list.iter().find(|a| a.rule.as_deref() == Some(rule) && lines.contains(&a.line));
        found.inspect(|allow| allow.used.set(true)).is_some()
    }

    /// What is wrong with the allows themselves; to be asked last.
    pub fn findings(&self, rules: &[&str]) -> Vec<Finding> {
        let wrong = |allow: &Allow| {
            let (wrong, fix) = match &allow.rule {
                None => {
                    ("this allow cannot be read".to_string(), "write `// tidy: allow(<rule>) <reason>`".to_string())
                }
                Some(rule) if !rules.contains(&rule.as_str()) => {
                    (format!("`{rule}` cannot be allowed"), format!("name one of {}", rules.join(", ")))
                }
                Some(_) if !allow.used.get() => {
                    let fix = "remove it, or put it on the line before the item (for a file, folder or crate: in the first 10)";
                    ("this allow excuses nothing".to_string(), fix.to_string())
                }
                Some(_) if allow.reason.is_empty() => {
                    ("this allow has no reason".to_string(), "say why after the bracket".to_string())
                }
                Some(_) => return None,
            };
            Some(Finding::new(RULE, (&self.file.path, allow.line), wrong, fix))
        };
        self.list.iter().filter_map(wrong).collect()
    }
}

fn read(line: usize, text: &str) -> Option<Allow> {
    let body = text.trim().strip_prefix("//")?.trim_start().strip_prefix("tidy:")?.trim();
    let named = body.strip_prefix("allow(").and_then(|rest| rest.split_once(')'));
    let (rule, reason) = match named {
        Some((rule, reason)) => (Some(rule.trim().to_string()), reason.trim().to_string()),
        None => (None, String::new()),
    };
    Some(Allow { line, rule, reason, used: Cell::new(false) })
}

/// The lines that belong to a string begun on an earlier line: what looks like a comment there is text.
fn quoted_lines(file: &SourceFile) -> Vec<RangeInclusive<usize>> {
    let mut ranges = Vec::new();
    tokens::levels(file.tokens(), &mut |level| {
        let long = level.iter().filter(|t| matches!(t.kind, Kind::Literal(_)) && t.end > t.line);
        ranges.extend(long.map(|t| t.line + 1..=t.end));
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::source::sample::tree;
    use super::*;

    fn allow(text: &str, excuse: Option<RangeInclusive<usize>>) -> Vec<String> {
        let tree = tree(&[("crates/a/src/x.rs", text)]);
        let allows = Allows::of(&tree.files[0]);
        if let Some(lines) = excuse {
            allows.excuse("size", lines);
        }
        allows.findings(&["size"]).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn an_allow_with_a_reason_that_excuses_something_passes() {
        assert!(allow("// tidy: allow(size) a table\nfn f() {}\n", Some(1..=1)).is_empty());
        assert!(allow("// tidy is a program, allow(size)\n", None).is_empty());
    }

    #[test]
    fn an_allow_that_is_not_needed_reasoned_or_understood_is_found() {
        assert_eq!(allow("// tidy: allow(size) a table\n", None), ["this allow excuses nothing"]);
        assert_eq!(allow("\n\n// tidy: allow(size) a table\n", Some(1..=2)), ["this allow excuses nothing"]);
        assert_eq!(allow("// tidy: allow(size)\n", Some(1..=1)), ["this allow has no reason"]);
        assert_eq!(allow("// tidy: allow(layers) no\n", None), ["`layers` cannot be allowed"]);
        assert_eq!(allow("// tidy: allow size\n", None), ["this allow cannot be read"]);
    }

    #[test]
    fn text_in_a_string_is_not_an_allow() {
        assert!(allow("const X: &str = \"\n// tidy: allow(size)\n\";\n", None).is_empty());
        assert!(allow("const X: &str = r#\"\n// tidy: allow(size)\n\"#;\n", None).is_empty());
    }
}

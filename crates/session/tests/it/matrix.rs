//! The language matrix: every rule in `tests/lang/matrix.txt` has a golden case that passes and one that fails.
//! Invariant: a rule without a passing and a failing case states its reason in the file.

use std::collections::BTreeMap;
use std::path::Path;

use testkit::golden;

const FOLDERS: [&str; 4] = ["lang/syntax", "lang/check", "lang/plan", "run"];

/// A rule of the language and the number of cases that show it.
#[derive(Debug, Default)]
struct Rule {
    /// The kind and the reason of an exception: the rule needs no passing case, no failing case, or neither.
    exception: Option<(String, String)>,
    passing: usize,
    failing: usize,
}

fn read_rules() -> BTreeMap<String, Rule> {
    let text = std::fs::read_to_string("../../tests/lang/matrix.txt").unwrap();
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let mut last_tag = String::new();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with([';', '#'])) {
        if let Some(exception) = line.strip_prefix("  ") {
            let (kind, reason) = exception.split_once(": ").unwrap_or_else(|| panic!("`{line}` gives no reason"));
            rules.get_mut(&last_tag).unwrap().exception = Some((kind.to_owned(), reason.to_owned()));
            continue;
        }
        let (tag, rule) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` has no rule"));
        assert!(!rule.trim().is_empty(), "`{line}` has no rule");
        assert!(rules.insert(tag.to_owned(), Rule::default()).is_none(), "`{tag}` is listed twice");
        tag.clone_into(&mut last_tag);
    }
    rules
}

/// Returns whether the expected output has a failure: a line `E0204 1:8 …` that is not a note, a failed result, or a
/// refused call.
fn is_failure(expected: &str) -> bool {
    let is_error_line = |line: &str| {
        let mut words = line.split(' ');
        let code = words.next().unwrap_or_default();
        let has_code = code.len() == 5 && code.starts_with('E') && code[1..].bytes().all(|b| b.is_ascii_digit());
        let has_location = words.next().is_some_and(|location| location.contains(':'));
        has_code && has_location && words.next() != Some("note:")
    };
    let is_failed_result = |line: &str| line.starts_with('#') && line.ends_with("(failed)");
    expected.lines().any(|line| is_error_line(line) || is_failed_result(line) || line.starts_with("review_needed: "))
}

#[test]
fn every_rule_has_a_passing_and_a_failing_case() {
    let mut rules = read_rules();
    let mut problems = Vec::new();
    let mut case_count = 0;
    for folder in FOLDERS {
        for (case, expected) in golden::with_expectations(Path::new("../../tests").join(folder)) {
            case_count += 1;
            let failing = is_failure(&expected);
            for tag in case.attribute("tags").unwrap_or_default().split_whitespace() {
                match rules.get_mut(tag) {
                    Some(rule) if failing => rule.failing += 1,
                    Some(rule) => rule.passing += 1,
                    None => problems.push(format!("`{}` has the unknown tag `{tag}`", case.name)),
                }
            }
        }
    }
    problems.extend(rules.iter().filter_map(|(tag, rule)| missing_case(tag, rule)));
    assert!(case_count >= 400, "only {case_count} cases");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn missing_case(tag: &str, rule: &Rule) -> Option<String> {
    let (needs_pass, needs_fail) = match rule.exception.as_ref().map(|(kind, reason)| (kind.as_str(), reason)) {
        None => (true, true),
        Some(("pass-only", _)) => (true, false),
        Some(("fail-only", _)) => (false, true),
        Some(("held by", file)) if Path::new("../..").join(file).is_file() => (false, false),
        Some(("held by", file)) => return Some(format!("`{tag}` is held by {file}, which does not exist")),
        Some(("untested", _)) => (false, false),
        Some((other, _)) => return Some(format!("`{tag}`: `{other}` is no kind of exception")),
    };
    match (needs_pass && rule.passing == 0, needs_fail && rule.failing == 0) {
        (true, true) => Some(format!("`{tag}` has no case")),
        (true, false) => Some(format!("`{tag}` has no case that passes")),
        (false, true) => Some(format!("`{tag}` has no case that fails")),
        (false, false) => None,
    }
}

#[test]
fn a_note_does_not_count_as_a_failure() {
    assert!(is_failure("x\nE0204 1:8 no filter"));
    assert!(is_failure("# Results\n\n### a (failed)\n"));
    assert!(!is_failure("n0 query\nE0201 1:1 note: read `a` as `A`"));
    assert!(!is_failure("the text E0204 is text"));
}

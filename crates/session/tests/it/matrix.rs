//! The language matrix: golden cases show every rule in `tests/lang/matrix.txt`, in both directions.
//! Invariant: a rule without a passing and a failing case states its reason in the file.

use std::collections::BTreeMap;
use std::path::Path;

use testkit::golden;

const FOLDERS: [&str; 4] = ["lang/syntax", "lang/check", "lang/plan", "run"];

/// One tag and how many cases show it.
#[derive(Debug, Default)]
struct Rule {
    mark: Option<(String, String)>,
    passing: usize,
    failing: usize,
}

fn rules() -> BTreeMap<String, Rule> {
    let text = std::fs::read_to_string("../../tests/lang/matrix.txt").unwrap();
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with([';', '#'])) {
        if let Some(mark) = line.strip_prefix("  ") {
            let (kind, reason) = mark.split_once(": ").unwrap_or_else(|| panic!("`{line}` gives no reason"));
            rules.get_mut(&last).unwrap().mark = Some((kind.to_owned(), reason.to_owned()));
            continue;
        }
        let (tag, rule) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` has no rule"));
        assert!(!rule.trim().is_empty(), "`{line}` has no rule");
        assert!(rules.insert(tag.to_owned(), Rule::default()).is_none(), "`{tag}` is there twice");
        tag.clone_into(&mut last);
    }
    rules
}

/// Whether the output fails: a line `E0204 1:8 …` that is not a note, a failed result, or a refused call.
fn fails(expected: &str) -> bool {
    let error = |line: &str| {
        let mut words = line.split(' ');
        let code = words.next().unwrap_or_default();
        let coded = code.len() == 5 && code.starts_with('E') && code[1..].bytes().all(|b| b.is_ascii_digit());
        let place = words.next().is_some_and(|place| place.contains(':'));
        coded && place && words.next() != Some("note:")
    };
    let failed = |line: &str| line.starts_with('#') && line.ends_with("(failed)");
    expected.lines().any(|line| error(line) || failed(line) || line.starts_with("review_needed: "))
}

#[test]
fn every_rule_has_a_passing_and_a_failing_case() {
    let mut rules = rules();
    let mut problems = Vec::new();
    let mut count = 0;
    for folder in FOLDERS {
        for (case, expected) in golden::with_expectations(Path::new("../../tests").join(folder)) {
            count += 1;
            let failing = fails(&expected);
            for tag in case.attribute("tags").unwrap_or_default().split_whitespace() {
                match rules.get_mut(tag) {
                    Some(rule) if failing => rule.failing += 1,
                    Some(rule) => rule.passing += 1,
                    None => problems.push(format!("`{}` has the unknown tag `{tag}`", case.name)),
                }
            }
        }
    }
    problems.extend(rules.iter().filter_map(|(tag, rule)| lacks(tag, rule)));
    assert!(count >= 400, "only {count} cases");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn lacks(tag: &str, rule: &Rule) -> Option<String> {
    let (pass, fail) = match rule.mark.as_ref().map(|(kind, reason)| (kind.as_str(), reason)) {
        None => (true, true),
        Some(("pass-only", _)) => (true, false),
        Some(("fail-only", _)) => (false, true),
        Some(("held by", file)) if Path::new("../..").join(file).is_file() => (false, false),
        Some(("held by", file)) => return Some(format!("`{tag}` is held by {file}, which is not there")),
        Some(("untested", _)) => (false, false),
        Some((other, _)) => return Some(format!("`{tag}`: `{other}` is no mark")),
    };
    match (pass && rule.passing == 0, fail && rule.failing == 0) {
        (true, true) => Some(format!("`{tag}` has no case")),
        (true, false) => Some(format!("`{tag}` has no case that passes")),
        (false, true) => Some(format!("`{tag}` has no case that fails")),
        (false, false) => None,
    }
}

#[test]
fn a_note_does_not_count_as_a_failure() {
    assert!(fails("x\nE0204 1:8 no filter"));
    assert!(fails("# Results\n\n### a (failed)\n"));
    assert!(!fails("n0 query\nE0201 1:1 note: read `a` as `A`"));
    assert!(!fails("the text E0204 is text"));
}

//! Any text at all is a catalog or a refusal with a place inside the text, and never a panic or a long wait.

use std::fmt::Write as _;

use catalog::{Rejected, read};
use proptest::prelude::*;

const EVERY: &str = include_str!("../../../../tests/catalog/every.yaml");
const DEMO: &str = include_str!("../../../../catalogs/demo.yaml");

/// Reads it, and holds a refusal to what every refusal promises.
fn told(text: &str) -> Option<Box<Rejected>> {
    let rejected = read("c.yaml", text).err()?;
    assert!(!rejected.diagnostics.is_empty());
    for diagnostic in &rejected.diagnostics {
        let (start, end) = (diagnostic.span.start as usize, diagnostic.span.end as usize);
        assert!(start <= text.len() && end <= text.len(), "{diagnostic:?} of {}", text.len());
        assert!(!diagnostic.message.is_empty() && !diagnostic.message.contains(['\n', '\r', '\0']), "{diagnostic:?}");
        assert!(diagnostic.message.chars().count() < 2_000, "{diagnostic:?}");
    }
    let lines = rejected.lines();
    assert_eq!(lines.lines().count(), rejected.diagnostics.len(), "{lines}");
    Some(rejected)
}

fn first(text: &str) -> String {
    told(text).map(|rejected| rejected.diagnostics[0].message.clone()).unwrap_or_default()
}

/// One change to a text: a line or a token goes, comes twice, or becomes something else.
#[derive(Debug, Clone)]
enum Change {
    DropLine(usize),
    TwiceLine(usize),
    SwapLines(usize, usize),
    DropToken(usize),
    Token(usize, String),
    Cut(usize),
    Indent(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let word = prop_oneof![
        "[a-zA-Z_{}.]{0,8}",
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("*a".to_owned()),
        Just("&a".to_owned()),
        Just("<<".to_owned()),
        Just("!!binary".to_owned()),
        Just("~".to_owned()),
        Just("-1".to_owned()),
        Just("1e999".to_owned()),
        Just("\"".to_owned()),
        Just("#".to_owned()),
        Just("\u{0}".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("Ticket".to_owned()),
        Just("project".to_owned()),
        Just("query".to_owned()),
        any::<String>(),
    ];
    let change = prop_oneof![
        any::<usize>().prop_map(Change::DropLine),
        any::<usize>().prop_map(Change::TwiceLine),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::SwapLines(a, b)),
        any::<usize>().prop_map(Change::DropToken),
        (any::<usize>(), word).prop_map(|(at, word)| Change::Token(at, word)),
        any::<usize>().prop_map(Change::Cut),
        any::<usize>().prop_map(Change::Indent),
    ];
    proptest::collection::vec(change, 1..4)
}

fn changed(text: &str, change: &Change) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = |n: usize| n % lines.len().max(1);
    let joined = |lines: Vec<&str>| lines.join("\n");
    match change {
        _ if lines.is_empty() => String::new(),
        Change::DropLine(n) => {
            joined(lines.iter().enumerate().filter(|(i, _)| *i != at(*n)).map(|(_, l)| *l).collect())
        }
        Change::TwiceLine(n) => joined([&lines[..=at(*n)], &lines[at(*n)..]].concat()),
        Change::SwapLines(a, b) => {
            let mut lines = lines.clone();
            let (a, b) = (at(*a), at(*b));
            lines.swap(a, b);
            joined(lines)
        }
        Change::DropToken(n) => token(text, *n, ""),
        Change::Token(n, word) => token(text, *n, word),
        Change::Cut(n) => text[..text.floor_char_boundary(n % (text.len() + 1))].to_owned(),
        Change::Indent(n) => {
            let indented = format!("  {}", lines[at(*n)]);
            let mut lines = lines.clone();
            let n = at(*n);
            lines[n] = &indented;
            joined(lines)
        }
    }
}

/// The n-th token (a run of word letters, or one other letter) replaced.
fn token(text: &str, n: usize, by: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens: Vec<(usize, usize)> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        match tokens.last_mut() {
            Some((start, end)) if *end == at && is_word(c) && text[*start..*end].chars().all(is_word) => {
                *end = at + c.len_utf8();
            }
            _ => tokens.push((at, at + c.len_utf8())),
        }
    }
    let Some((start, end)) = tokens.get(n % tokens.len().max(1)) else { return by.to_owned() };
    format!("{}{by}{}", &text[..*start], &text[*end..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_catalog_with_changes_is_read_or_refused(changes in changes(), demo in any::<bool>()) {
        let text = changes.iter().fold(if demo { DEMO } else { EVERY }.to_owned(), |text, change| changed(&text, change));
        told(&text);
    }

    #[test]
    fn any_text_is_refused(text in any::<String>()) {
        prop_assert!(told(&text).is_some());
    }

    #[test]
    fn any_yaml_is_refused(text in "([ ]{0,6}[-?:]? ?[a-z&*!|>'\"{}\\[\\],]{0,6}:?[ \t]?[a-z0-9&*!|>'\"{}\\[\\],]{0,6}\n){0,20}") {
        told(&text);
    }
}

#[test]
fn a_few_lines_that_unfold_to_millions() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(laughs, "a{n}: &a{n} [{before}]").unwrap();
    }
    told(&format!("{laughs}catalog: x\n")).unwrap();
    // In a place where anything is allowed.
    let body = format!(
        "capabilities:\n  a:\n    body:\n{}",
        laughs.lines().map(|l| format!("      {l}\n")).collect::<String>()
    );
    let says = first(&body);
    assert!(says.contains("more than a catalog may hold"), "{says}");

    // The same with the format's own means: types that hold one another twice.
    let mut types = "  T0: {object: {a: string, b: string}}\n".to_owned();
    for n in 1..40 {
        writeln!(types, "  T{n}: {{object: {{a: T{0}, b: T{0}}}}}", n - 1).unwrap();
    }
    let says = first(&EVERY.replacen("types:\n", &format!("types:\n{types}"), 1));
    assert!(says.contains("unfold to more than"), "{says}");
}

#[test]
fn deep_and_long_texts() {
    let deep = |open: &str, n: usize| format!("{EVERY}\nextra: {}", open.repeat(n));
    for text in
        [deep("[", 10_000), deep("{a: ", 10_000), (0..3_000).fold(String::new(), |s, n| s + &" ".repeat(n) + "a:\n")]
    {
        assert!(told(&text).is_some());
    }
    let mut nested = "string".to_owned();
    for _ in 0..40 {
        nested = format!("{{array: {nested}}}");
    }
    let says = first(&EVERY.replacen("{array: Block}", &nested, 1));
    assert!(says.contains("nested deeper than 24"), "{says}");
    // Ten megabytes: of one text, of comments, of keys that mean nothing.
    told(&EVERY.replacen("Every part of the format", &"x".repeat(10_000_000), 1));
    told(&format!("{EVERY}{}", "# nothing\n".repeat(1_000_000)));
    assert!(told(&format!("{EVERY}extra:\n{}", "  - some words\n".repeat(700_000))).is_some());
    let says = first(&"#".repeat(33 * 1024 * 1024));
    assert!(says.contains("at most"), "{says}");
}

#[test]
fn letters_that_are_not_letters() {
    let fine = |text: &str| told(text).map(|rejected| rejected.lines());
    assert_eq!(fine(&format!("\u{feff}{EVERY}")), None, "a byte order mark is no mistake");
    assert_eq!(fine(&EVERY.replace('\n', "\r\n")), None, "nor are the line ends of Windows");
    let crlf = EVERY.replace('\n', "\r\n").replacen("title: Every", "titel: Every", 1);
    assert!(fine(&crlf).unwrap().starts_with("c.yaml:4:1: "), "{:?}", fine(&crlf));
    let marked = format!("\u{feff}{}", EVERY.replacen("title: Every", "titel: Every", 1));
    assert!(fine(&marked).unwrap().starts_with("c.yaml:4:1: "), "{:?}", fine(&marked));
    for bad in ["\0", "\u{1}", "\u{7f}", "\u{202e}", "\u{2028}", "\t"] {
        told(&EVERY.replacen("every", &format!("ev{bad}ery"), 1));
        told(&EVERY.replacen("    about: a unit", &format!("{bad}   about: a unit"), 1));
        told(&EVERY.replacen("  Person:", &format!("  Per{bad}son:"), 1));
    }
}

#[test]
fn an_action_on_nothing_in_particular_needs_nothing_that_reads() {
    let text = |http: &str| {
        format!(
            "catalog: jobs\nversion: 1\ntitle: Jobs\norigin: https://jobs.example.com\nentities:\n  Job: {{about: a job, key: [id], \
             fields: {{id: string}}}}\ncapabilities:\n  job_run: {{action: Job, http: {http}}}\n"
        )
    };
    assert!(catalog::read("jobs", &text("POST /run")).is_ok());
    let rejected = catalog::read("jobs", &text("\"POST /jobs/{id}/run\"")).unwrap_err();
    assert!(
        rejected.lines().contains("E0504 nothing reads Job"),
        "an instance must come from somewhere: {}",
        rejected.lines()
    );
}

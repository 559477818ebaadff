//! Tests that any text is read as a catalog, or is refused with diagnostics whose positions are inside the text. No
//! text causes a panic or a long wait.

use std::fmt::Write as _;

use catalog::{Rejected, read};
use proptest::prelude::*;

/// A catalog that uses every part of the format.
const EVERY_YAML: &str = include_str!("../../../../tests/catalog/every.yaml");
const DEMO_YAML: &str = include_str!("../../../../catalogs/demo.yaml");

/// Reads a text. If the text is refused, checks the properties that every refusal must have.
fn read_and_check(text: &str) -> Option<Box<Rejected>> {
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

fn first_message(text: &str) -> String {
    read_and_check(text).map(|rejected| rejected.diagnostics[0].message.clone()).unwrap_or_default()
}

/// One random change of a text.
#[derive(Debug, Clone)]
enum Mutation {
    DropLine(usize),
    RepeatLine(usize),
    SwapLines(usize, usize),
    DropToken(usize),
    ReplaceToken(usize, String),
    /// Removes the text after this byte.
    Truncate(usize),
    IndentLine(usize),
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
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
    let mutation = prop_oneof![
        any::<usize>().prop_map(Mutation::DropLine),
        any::<usize>().prop_map(Mutation::RepeatLine),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Mutation::SwapLines(a, b)),
        any::<usize>().prop_map(Mutation::DropToken),
        (any::<usize>(), word).prop_map(|(at, word)| Mutation::ReplaceToken(at, word)),
        any::<usize>().prop_map(Mutation::Truncate),
        any::<usize>().prop_map(Mutation::IndentLine),
    ];
    proptest::collection::vec(mutation, 1..4)
}

fn apply_mutation(text: &str, mutation: &Mutation) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = |n: usize| n % lines.len().max(1);
    let joined = |lines: Vec<&str>| lines.join("\n");
    match mutation {
        _ if lines.is_empty() => String::new(),
        Mutation::DropLine(n) => {
            joined(lines.iter().enumerate().filter(|(i, _)| *i != at(*n)).map(|(_, l)| *l).collect())
        }
        Mutation::RepeatLine(n) => joined([&lines[..=at(*n)], &lines[at(*n)..]].concat()),
        Mutation::SwapLines(a, b) => {
            let mut lines = lines.clone();
            let (a, b) = (at(*a), at(*b));
            lines.swap(a, b);
            joined(lines)
        }
        Mutation::DropToken(n) => replace_token(text, *n, ""),
        Mutation::ReplaceToken(n, word) => replace_token(text, *n, word),
        Mutation::Truncate(n) => text[..text.floor_char_boundary(n % (text.len() + 1))].to_owned(),
        Mutation::IndentLine(n) => {
            let indented = format!("  {}", lines[at(*n)]);
            let mut lines = lines.clone();
            let n = at(*n);
            lines[n] = &indented;
            joined(lines)
        }
    }
}

/// Replaces the n-th token. A token is a run of word characters or a single other character.
fn replace_token(text: &str, n: usize, by: &str) -> String {
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
    fn a_mutated_catalog_is_read_or_refused(mutations in mutations(), demo in any::<bool>()) {
        let text = mutations.iter().fold(if demo { DEMO_YAML } else { EVERY_YAML }.to_owned(), |text, mutation| apply_mutation(&text, mutation));
        read_and_check(&text);
    }

    #[test]
    fn random_text_is_refused(text in any::<String>()) {
        prop_assert!(read_and_check(&text).is_some());
    }

    #[test]
    fn random_yaml_is_refused(text in "([ ]{0,6}[-?:]? ?[a-z&*!|>'\"{}\\[\\],]{0,6}:?[ \t]?[a-z0-9&*!|>'\"{}\\[\\],]{0,6}\n){0,20}") {
        read_and_check(&text);
    }
}

#[test]
fn a_few_lines_that_expand_to_millions_of_values_are_refused() {
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(aliases, "a{n}: &a{n} [{before}]").unwrap();
    }
    read_and_check(&format!("{aliases}catalog: x\n")).unwrap();
    // The same aliases below `body`, where any value is allowed.
    let body = format!(
        "capabilities:\n  a:\n    body:\n{}",
        aliases.lines().map(|l| format!("      {l}\n")).collect::<String>()
    );
    let message = first_message(&body);
    assert!(message.contains("more than a catalog may hold"), "{message}");

    // Named types, each of which contains the previous type twice, expand in the same way.
    let mut types = "  T0: {object: {a: string, b: string}}\n".to_owned();
    for n in 1..40 {
        writeln!(types, "  T{n}: {{object: {{a: T{0}, b: T{0}}}}}", n - 1).unwrap();
    }
    let message = first_message(&EVERY_YAML.replacen("types:\n", &format!("types:\n{types}"), 1));
    assert!(message.contains("unfold to more than"), "{message}");
}

#[test]
fn deep_and_long_texts_are_read_or_refused() {
    let deep = |open: &str, n: usize| format!("{EVERY_YAML}\nextra: {}", open.repeat(n));
    for text in
        [deep("[", 10_000), deep("{a: ", 10_000), (0..3_000).fold(String::new(), |s, n| s + &" ".repeat(n) + "a:\n")]
    {
        assert!(read_and_check(&text).is_some());
    }
    let mut nested = "string".to_owned();
    for _ in 0..40 {
        nested = format!("{{array: {nested}}}");
    }
    let message = first_message(&EVERY_YAML.replacen("{array: Block}", &nested, 1));
    assert!(message.contains("nested deeper than 24"), "{message}");
    // These texts have ten megabytes of one string, of comments, and of items below an unknown key.
    read_and_check(&EVERY_YAML.replacen("Every part of the format", &"x".repeat(10_000_000), 1));
    read_and_check(&format!("{EVERY_YAML}{}", "# nothing\n".repeat(1_000_000)));
    assert!(read_and_check(&format!("{EVERY_YAML}extra:\n{}", "  - some words\n".repeat(700_000))).is_some());
    let message = first_message(&"#".repeat(33 * 1024 * 1024));
    assert!(message.contains("at most"), "{message}");
}

#[test]
fn byte_order_marks_line_ends_and_control_characters_are_read_or_refused() {
    let rejection = |text: &str| read_and_check(text).map(|rejected| rejected.lines());
    assert_eq!(rejection(&format!("\u{feff}{EVERY_YAML}")), None, "a byte order mark is no mistake");
    assert_eq!(rejection(&EVERY_YAML.replace('\n', "\r\n")), None, "the line ends of Windows are no mistake");
    let crlf = EVERY_YAML.replace('\n', "\r\n").replacen("title: Every", "titel: Every", 1);
    assert!(rejection(&crlf).unwrap().starts_with("c.yaml:4:1: "), "{:?}", rejection(&crlf));
    let marked = format!("\u{feff}{}", EVERY_YAML.replacen("title: Every", "titel: Every", 1));
    assert!(rejection(&marked).unwrap().starts_with("c.yaml:4:1: "), "{:?}", rejection(&marked));
    for bad in ["\0", "\u{1}", "\u{7f}", "\u{202e}", "\u{2028}", "\t"] {
        read_and_check(&EVERY_YAML.replacen("every", &format!("ev{bad}ery"), 1));
        read_and_check(&EVERY_YAML.replacen("    about: a unit", &format!("{bad}   about: a unit"), 1));
        read_and_check(&EVERY_YAML.replacen("  Person:", &format!("  Per{bad}son:"), 1));
    }
}

#[test]
fn an_entity_with_only_an_action_without_an_instance_needs_no_read() {
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

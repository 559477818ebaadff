//! `cargo xtask prose`: finds sentences in comments and documentation whose form is hard to read.
//! Invariant: only the form of a sentence is checked. Sentences with a certain mistake are findings; doubtful ones are only counted.

pub mod comments;
mod sentences;
mod verbs;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context;

use comments::Kind;
use sentences::{CODE, Part, Sentence};

/// The words with which no sentence may begin.
const REFUSED_OPENINGS: &[&str] = &["who", "what", "whose", "whoever", "nobody"];

/// The words at the start of a sentence that usually should be replaced by a noun. The share of such sentences is reported.
const VAGUE_OPENINGS: &[&str] = &["of", "it", "that", "those"];

/// The pronouns that must not be the only word of a sentence.
const PRONOUNS: &[&str] = &["it", "them", "this", "that", "those", "these"];

/// A sentence to rewrite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub wrong: String,
    pub sentence: String,
}

/// The numbers of sentences in one crate or top-level folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SentenceCounts {
    pub sentences: usize,
    /// The number of sentences that begin with one of `REFUSED_OPENINGS`.
    pub refused: usize,
    /// The number of sentences that begin with one of `VAGUE_OPENINGS`.
    pub vague: usize,
    /// The number of sentences without a verb, among those that the rule about verbs applies to.
    pub verbless: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.wrong, self.sentence)
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// The counts of each crate, and of each top-level folder for files outside of crates.
    pub counts: BTreeMap<String, SentenceCounts>,
}

impl Report {
    /// Returns a heading, a line for each crate that has sentences, and a line with the sums.
    pub fn table(&self) -> Vec<String> {
        let mut total = SentenceCounts::default();
        let mut lines = vec![format!(
            "{:<12} {:>9} {:>8} {:>9}  {}",
            "prose", "sentences", "refused", "no verb", "begin with Of, It, That, Those"
        )];
        let mut row = |name: &str, count: &SentenceCounts| {
            let share = 100.0 * count.vague as f64 / count.sentences.max(1) as f64;
            let SentenceCounts { sentences, refused, verbless, vague } = count;
            lines.push(format!("{name:<12} {sentences:>9} {refused:>8} {verbless:>9}  {vague:>5} ({share:.1} %)"));
        };
        for (name, count) in &self.counts {
            row(name, count);
            total.sentences += count.sentences;
            total.refused += count.refused;
            total.vague += count.vague;
            total.verbless += count.verbless;
        }
        row("all", &total);
        lines
    }
}

/// Checks every documentation page and every file with comments below the root. If `only` has entries, only paths that begin with one
/// of the entries are checked.
pub fn run(root: &Path, only: &[String]) -> anyhow::Result<Report> {
    let mut paths = Vec::new();
    walk(root, "", &mut paths)?;
    paths.sort();
    let mut report = Report::default();
    for path in
        paths.iter().filter(|path| only.is_empty() || only.iter().any(|prefix| path.starts_with(prefix.as_str())))
    {
        let bytes = std::fs::read(root.join(path)).with_context(|| format!("{path} cannot be read"))?;
        if !path.starts_with(IN_ENGINE_DIGEST)
            && let Ok(text) = String::from_utf8(bytes)
        {
            inspect(path, &text, &mut report);
        }
    }
    Ok(report)
}

/// The names of folders that are not read, because they contain foreign files or build output.
const SKIPPED: &[&str] = &["target", "node_modules", "corpus", "findings"];

/// The folder whose files are part of the digest of the JavaScript engine, including their comments. The files are not checked, because
/// a changed comment would make a new engine, with which no stored heap can run.
const IN_ENGINE_DIGEST: &str = "crates/js/prelude/";

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let shown = if folder.is_empty() { "." } else { folder };
    for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("{shown} cannot be listed"))? {
        let entry = entry.with_context(|| format!("{shown} cannot be listed"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().with_context(|| format!("{path} cannot be read"))?;
        if name.starts_with('.') || kind.is_symlink() || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            walk(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

fn inspect(path: &str, text: &str, report: &mut Report) {
    let Some(blocks) = comments::blocks(path, text) else { return };
    let count = report.counts.entry(crate_or_folder(path)).or_default();
    for block in &blocks {
        for sentence in sentences::sentences(&block.lines) {
            count.sentences += 1;
            let opening = opening(&sentence.text);
            count.vague += usize::from(VAGUE_OPENINGS.contains(&opening.as_str()));
            let wrong = if let Some(wrong) = refused_opening(&sentence, &opening) {
                count.refused += 1;
                wrong
            } else if needs_verb(block.kind, &sentence) && !verbs::has_verb(&sentence.text, true) {
                count.verbless += 1;
                "the sentence has no verb".to_owned()
            } else {
                continue;
            };
            report.findings.push(Finding {
                path: path.to_owned(),
                line: sentence.line,
                wrong,
                sentence: sentence.text,
            });
        }
    }
}

/// Returns the name under which a file is counted: its crate, or its top-level folder if the file is outside of crates.
fn crate_or_folder(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates"), Some(name)) => name.to_owned(),
        (Some(_), None) => "(root)".to_owned(),
        (Some(top), _) => format!("{top}/"),
        (None, _) => String::new(),
    }
}

/// Returns the first word of a sentence in lower case, without punctuation and without the part after an apostrophe.
fn opening(text: &str) -> String {
    let word = text.trim_start_matches(|c: char| !c.is_alphanumeric()).split_whitespace().next().unwrap_or_default();
    word.split(['\'', '’']).next().unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn refused_opening(sentence: &Sentence, opening: &str) -> Option<String> {
    let lone = sentence.text.split_whitespace().count() == 1 && sentence.text.ends_with('.');
    if lone && PRONOUNS.contains(&opening) && sentence.part == Part::Paragraph {
        return Some("the sentence is one pronoun".to_owned());
    }
    let label = sentence.part == Part::Cell && !sentence.text.starts_with(char::is_uppercase);
    // A heading such as "What a script can use" is the name of a section and not a sentence, so the openings are allowed.
    let heading = sentence.part == Part::Heading;
    let refused = REFUSED_OPENINGS.contains(&opening) && !label && !heading;
    refused
        .then(|| format!("the sentence begins with `{}`", sentence.text.split_whitespace().next().unwrap_or_default()))
}

/// Returns whether the rule about verbs applies to a sentence. It applies to sentences of at least three words in the documentation of a
/// function or in a comment on its own lines. Shorter sentences are labels, and a sentence of code spans cannot be checked.
fn needs_verb(kind: Kind, sentence: &Sentence) -> bool {
    let words: Vec<&str> = sentence.text.split_whitespace().collect();
    let plain = words
        .iter()
        .filter(|word| !word.contains(CODE) && word.chars().all(|c| c.is_alphabetic() || ".,;:'’-".contains(c)))
        .count();
    let spoken = plain > words.iter().filter(|word| word.contains(CODE)).count();
    let whole = sentence.text.ends_with('.') && sentence.text.starts_with(|c: char| c.is_uppercase() || c == '`');
    matches!(kind, Kind::Function | Kind::Inner)
        && sentence.part == Part::Paragraph
        && whole
        && spoken
        && words.len() >= 3
        && !sentence.text.starts_with(CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, text: &str) -> Vec<(usize, String)> {
        let mut report = Report::default();
        inspect(path, text, &mut report);
        report.findings.into_iter().map(|finding| (finding.line, finding.wrong)).collect()
    }

    #[test]
    fn refused_openings_are_found_in_every_language() {
        let begins = |line, word: &str| vec![(line, format!("the sentence begins with `{word}`"))];
        assert_eq!(wrong("crates/a/src/x.rs", "//! A. What is kept\n//! here."), begins(1, "What"));
        assert_eq!(wrong("crates/a/src/x.rs", "struct S {\n  /// Who asked.\n  who: X,\n}"), begins(2, "Who"));
        assert_eq!(wrong("docs/x.md", "Text.\n\nNobody reads it.\n"), begins(3, "Nobody"));
        assert_eq!(wrong("docs/x.md", "- One. Whose turn it is.\n"), begins(1, "Whose"));
        assert_eq!(wrong("tests/x.py", "# what it does\n"), begins(1, "what"));
        assert_eq!(wrong("scripts/x.sh", "# **Whoever** runs it.\n"), begins(1, "**Whoever**"));
    }

    #[test]
    fn code_quotes_questions_and_labels_are_left_alone() {
        for (path, text) in [
            ("docs/x.md", "# What does it cost?\n"),
            ("docs/x.md", "## What a script can use\n"),
            ("docs/x.md", "```\nWhat is code\n```\n"),
            ("docs/x.md", "| what looks wrong | look in |\n"),
            ("docs/x.md", "He asked \"Who is it?\" and `What`.\n"),
            ("crates/a/src/x.rs", "fn f() { g(\"// What is text.\") }"),
            ("crates/a/src/x.rs", "/// Whatever the caller chose.\nfn f() {}"),
            ("x.json", "// What"),
        ] {
            assert_eq!(wrong(path, text), [], "{text}");
        }
    }

    #[test]
    fn functions_and_inner_comments_have_verbs() {
        let count = |text: &str| wrong("crates/a/src/x.rs", text).len();
        assert_eq!(count("/// The rows of one step.\nfn rows() {}"), 1);
        assert_eq!(count("/// Returns the rows of one step.\nfn rows() {}"), 0);
        assert_eq!(count("/// The rows of one step.\nstruct Rows;"), 0);
        assert_eq!(count("fn f() {\n  // Half a second per retry.\n  g();\n}"), 1);
        assert_eq!(count("fn f() {\n  g(); // Half a second per retry.\n}"), 0);
        assert_eq!(count("fn f() {\n  // why: tests\n  // Sorting\n}"), 0);
        assert_eq!(count("/// It.\nstruct Rows;"), 1);
    }

    #[test]
    fn counts_are_kept_by_crate() {
        let mut report = Report::default();
        inspect("crates/a/src/x.rs", "//! It is. That was. Done. Who is it.\n", &mut report);
        inspect("docs/x.md", "It is.\n", &mut report);
        assert_eq!(report.counts["a"], SentenceCounts { sentences: 4, refused: 1, vague: 2, verbless: 0 });
        assert_eq!(report.counts["docs/"].vague, 1);
        assert_eq!(report.table().len(), 4);
    }
}

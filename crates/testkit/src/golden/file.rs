//! Parses golden files, and writes them with new expectations.
//! Invariant: writing unchanged expectations gives the same bytes, and inputs are never changed.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::Case;

/// A parsed golden file.
#[derive(Debug)]
pub struct CaseFile<'a> {
    text: &'a str,
    pub sections: Vec<Section>,
}

/// One case of a golden file, with its expectation and the position of the expectation.
#[derive(Debug)]
pub struct Section {
    pub case: Case,
    /// The expected output. `None` if the case has no line `---`.
    pub expected: Option<String>,
    /// The number of the first line of the expectation, counted from 1.
    pub expected_line: usize,
    /// The range of bytes that an update replaces: from the line `---` to the next case.
    expected_range: Range<usize>,
}

/// A mistake in the syntax of a golden file.
#[derive(Debug, PartialEq, Eq)]
pub struct FormatError {
    pub line: usize,
    pub kind: FormatProblem,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FormatProblem {
    EmptyCase,
    SecondSeparator,
    /// A part of the line `#!` that is not of the form `key = value`.
    Attribute(String),
    AttributeTwice(String),
}

impl fmt::Display for FormatProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyCase => f.write_str("an empty case"),
            Self::SecondSeparator => {
                f.write_str("a second `---` in one case; write `\\---`, or `===` before a new case")
            }
            Self::Attribute(item) => write!(f, "`{item}` is not an attribute; write `#! key = value, key = value`"),
            Self::AttributeTwice(key) => write!(f, "attribute `{key}` is given twice"),
        }
    }
}

/// One line with its newline and its position.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Counts from 1.
    number: usize,
    /// The position of its first byte in the file.
    start: usize,
    text: &'a str,
}

impl<'a> CaseFile<'a> {
    pub fn parse(path: &Path, text: &'a str) -> Result<Self, FormatError> {
        let mut sections = Vec::new();
        for (at, (title, lines)) in split_cases(text).into_iter().enumerate() {
            sections.push(section(path, at, title, &lines)?);
        }
        Ok(Self { text, sections })
    }

    /// Returns the text of the file with new expectations. A case with the output `None` keeps its expectation.
    pub fn with_expectations(&self, outputs: &[Option<String>]) -> String {
        let mut out = String::new();
        let mut copied = 0;
        for (section, output) in self.sections.iter().zip(outputs) {
            let Some(output) = output.as_deref().map(str::trim_end) else {
                continue;
            };
            if section.expected.as_deref().map(str::trim_end) == Some(output) {
                continue;
            }
            let Range { start, end } = section.expected_range;
            out.push_str(&self.text[copied..start]);
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            if section.expected.is_none() {
                out.push_str("---\n");
            }
            push_expectation(&mut out, output, &self.text[start..end]);
            copied = end;
        }
        out.push_str(&self.text[copied..]);
        out
    }
}

/// Appends the new expectation, followed by the blank lines at the end of the old one.
fn push_expectation(out: &mut String, output: &str, old: &str) {
    for line in output.split('\n').filter(|_| !output.is_empty()) {
        if is_separator(without_backslashes(line)) || is_title(without_backslashes(line)) {
            out.push('\\');
        }
        out.push_str(line);
        out.push('\n');
    }
    let tail = &old[old.trim_end().len()..];
    out.push_str(tail.split_once('\n').map_or("", |(_, blank)| blank));
}

fn is_separator(line: &str) -> bool {
    line.trim_end() == "---"
}

fn is_title(line: &str) -> bool {
    line.trim_end() == "===" || line.starts_with("=== ")
}

/// Returns the line without the backslashes at its start.
fn without_backslashes(line: &str) -> &str {
    line.trim_start_matches('\\')
}

/// Removes one backslash from an escaped marker, such as `\---`.
fn unescape(line: &str) -> &str {
    let bare = without_backslashes(line);
    if is_separator(bare) || is_title(bare) { line.strip_prefix('\\').unwrap_or(line) } else { line }
}

type Lines<'a> = Vec<Line<'a>>;

fn split_cases(text: &str) -> Vec<(Option<Line<'_>>, Lines<'_>)> {
    let mut cases: Vec<(Option<Line<'_>>, Lines<'_>)> = Vec::new();
    let mut start = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let line = Line { number: at + 1, start, text: line };
        start += line.text.len();
        match cases.last_mut() {
            _ if is_title(line.text) => cases.push((Some(line), Vec::new())),
            Some((_, lines)) => lines.push(line),
            None => cases.push((None, vec![line])),
        }
    }
    if cases.is_empty() {
        cases.push((None, Vec::new()));
    }
    cases
}

fn section(path: &Path, at: usize, title: Option<Line<'_>>, lines: &[Line<'_>]) -> Result<Section, FormatError> {
    let line = title.or(lines.first().copied()).map_or(1, |line| line.number);
    let has_attributes = lines.first().is_some_and(|first| first.text.starts_with("#!"));
    let attributes = if has_attributes { attributes(lines[0])? } else { BTreeMap::new() };
    let body = if has_attributes { &lines[1..] } else { lines };
    let separator = body.iter().position(|line| is_separator(line.text));
    let (input, expected) = separator.map_or((body, None), |at| (&body[..at], Some(&body[at + 1..])));
    if separator.is_none() && input.iter().all(|line| line.text.trim().is_empty()) {
        return Err(FormatError { line, kind: FormatProblem::EmptyCase });
    }
    if let Some(second) = expected.unwrap_or_default().iter().find(|line| is_separator(line.text)) {
        return Err(FormatError { line: second.number, kind: FormatProblem::SecondSeparator });
    }
    let input = join(input);
    let case = Case {
        name: name(path, at, title),
        path: path.to_owned(),
        line,
        attributes,
        input: input.strip_suffix('\n').unwrap_or(&input).to_owned(),
    };
    let (last_number, end) = lines.last().map_or((line, 0), |last| (last.number, last.start + last.text.len()));
    let first_expected = expected.and_then(<[Line<'_>]>::first);
    Ok(Section {
        case,
        expected: expected.map(join),
        expected_line: first_expected.map_or(last_number + 1, |first| first.number),
        expected_range: first_expected.map_or(end, |first| first.start)..end,
    })
}

fn join(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| unescape(line.text)).collect()
}

fn name(path: &Path, at: usize, title: Option<Line<'_>>) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let title = title.map(|line| line.text.trim_start_matches('=').trim().to_owned());
    match (title.filter(|title| !title.is_empty()), at) {
        (Some(title), _) => format!("{stem}/{title}"),
        (None, 0) => stem,
        (None, at) => format!("{stem}/{}", at + 1),
    }
}

fn attributes(line: Line<'_>) -> Result<BTreeMap<String, String>, FormatError> {
    let mut attributes = BTreeMap::new();
    let wrong = |kind| FormatError { line: line.number, kind };
    for item in line.text.trim_start_matches("#!").split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let pair = item.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            return Err(wrong(FormatProblem::Attribute(item.to_owned())));
        };
        if attributes.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(wrong(FormatProblem::AttributeTwice(key.to_owned())));
        }
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(text: &str) -> Vec<(String, String, Option<String>)> {
        let file = CaseFile::parse(Path::new("dir/file.case"), text).unwrap();
        file.sections.into_iter().map(|s| (s.case.name, s.case.input, s.expected)).collect()
    }

    fn case(name: &str, input: &str, expected: &str) -> (String, String, Option<String>) {
        (name.to_owned(), input.to_owned(), Some(expected.to_owned()))
    }

    #[test]
    fn a_case_is_named_by_its_file_title_or_number() {
        assert_eq!(
            inputs("a\n---\nb\n===\nc\n---\nd\n=== e f\ng\n---\nh"),
            [case("file", "a", "b\n"), case("file/2", "c", "d\n"), case("file/e f", "g", "h")]
        );
        assert_eq!(inputs("=== first\na\n---\nb\n"), [case("file/first", "a", "b\n")]);
    }

    #[test]
    fn markers_in_a_text_are_escaped() {
        assert_eq!(
            inputs("\\---\n\\\\---\n\\===\n\\x\n----\n---\n\\=== y\n\\---\n"),
            [case("file", "---\n\\---\n===\n\\x\n----", "=== y\n---\n")]
        );
    }

    #[test]
    fn an_escaped_expectation_is_parsed_to_the_same_text() {
        let text = "in\n---\nold\n";
        let file = CaseFile::parse(Path::new("f.case"), text).unwrap();
        let output = "---\n\\---\n=== t\n====\n\\n";
        let written = file.with_expectations(&[Some(output.to_owned())]);
        let parsed = CaseFile::parse(Path::new("f.case"), &written).unwrap();
        assert_eq!(parsed.sections[0].expected.as_deref().map(str::trim_end), Some(output));
    }

    #[test]
    fn attributes_are_parsed_to_pairs() {
        let file = CaseFile::parse(Path::new("f.case"), "#! a = b c,d=e=f ,\n#! input\n---\n").unwrap();
        let case = &file.sections[0].case;
        assert_eq!((case.attribute("a"), case.attribute("d")), (Some("b c"), Some("e=f")));
        assert_eq!(case.input, "#! input");
    }
}

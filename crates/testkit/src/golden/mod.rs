//! Runs golden files (`*.case`): each has inputs with their expected outputs.
//!
//! ```text
//! #! stage = check, catalog = tracker      attributes, optional
//! e1{statuz="open"}                        the input
//! ---
//! E0204 1:4 no filter `statuz`             the expected output
//! === a second case                        its name, optional
//! …
//! ```
//! A line `---` or `===` inside of an input or an expectation is written as `\---` or `\===`.
//!
//! Invariants: every case of a folder runs, even if an earlier case fails. `UPDATE=1` changes only expectations. A folder or a file
//! without cases is a failure.

mod diff;
mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use file::{CaseFile, Section};

/// One case of a golden file, without its expectation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Case {
    /// The name of the file without its extension. In a file with several cases, the name or the number of the case follows: `file/2`.
    pub name: String,
    pub path: PathBuf,
    /// The number of the first line of the case in its file, counted from 1.
    pub line: usize,
    /// The attributes of the case: the pairs of the line `#!`.
    pub attributes: BTreeMap<String, String>,
    /// The input without its last newline.
    pub input: String,
}

impl Case {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// Runs every case in the files below `dir`, and panics with a list of all differences. The files are in the order of their paths.
/// `output` computes the output of a case. With `UPDATE=1` in the environment, the outputs replace the expectations in the files.
pub fn run(dir: impl AsRef<Path>, output: impl FnMut(&Case) -> String) {
    let mode = match std::env::var("UPDATE").as_deref() {
        Ok("1") => Mode::Update,
        _ => Mode::Compare,
    };
    fail_on(&run_in(mode, dir.as_ref(), output));
}

/// Returns every case in the files below `dir`, for a test about all cases together.
pub fn cases(dir: impl AsRef<Path>) -> Vec<Case> {
    let mut all = Vec::new();
    fail_on(&run_in(Mode::ReadOnly, dir.as_ref(), |case| {
        all.push(case.clone());
        String::new()
    }));
    all
}

/// Returns every case in the files below `dir`, with its expected output.
pub fn with_expectations(dir: impl AsRef<Path>) -> Vec<(Case, String)> {
    let mut paths = Vec::new();
    let mut all = Vec::new();
    let mut problems = Vec::new();
    problems.extend(collect(dir.as_ref(), &mut paths).err());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        match CaseFile::parse(&path, &text) {
            Ok(file) => all.extend(file.sections.into_iter().map(|s| (s.case, s.expected.unwrap_or_default()))),
            Err(error) => problems.push(problem(&path, error.line, error.kind.to_string())),
        }
    }
    fail_on(&problems);
    all
}

fn fail_on(problems: &[Problem]) {
    let text: Vec<String> = problems.iter().map(Problem::to_string).collect();
    assert!(
        problems.is_empty(),
        "{} golden case(s) differ; `UPDATE=1` writes what was found into the files\n\n{}",
        problems.len(),
        text.join("\n\n")
    );
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compare,
    Update,
    /// The cases are read, and their outputs are not compared with the expectations.
    ReadOnly,
}

/// A reason why a run of golden files fails, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    path: PathBuf,
    line: usize,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

fn run_in(mode: Mode, dir: &Path, mut output: impl FnMut(&Case) -> String) -> Vec<Problem> {
    let mut paths = Vec::new();
    let mut problems = Vec::new();
    if let Err(problem) = collect(dir, &mut paths) {
        problems.push(problem);
    }
    if paths.is_empty() && problems.is_empty() {
        problems.push(problem(dir, 0, "no `*.case` file here: this test cannot fail"));
    }
    for path in paths {
        problems.extend(run_file(mode, &path, &mut output));
    }
    problems
}

fn problem(path: &Path, line: usize, message: impl Into<String>) -> Problem {
    Problem { path: path.to_owned(), line, message: message.into() }
}

/// Collects the path of every `*.case` file below `dir`. Folders and files are sorted together by name.
fn collect(dir: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let unreadable = |error: std::io::Error| problem(dir, 0, format!("cannot be read: {error}"));
    let entries = std::fs::read_dir(dir).map_err(unreadable)?;
    let mut children =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    children.sort();
    for path in children {
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "case") {
            paths.push(path);
        }
    }
    Ok(())
}

fn run_file(mode: Mode, path: &Path, output: &mut impl FnMut(&Case) -> String) -> Vec<Problem> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return vec![problem(path, 0, format!("cannot be read: {error}"))],
    };
    let file = match CaseFile::parse(path, &text) {
        Ok(file) => file,
        Err(error) => return vec![problem(path, error.line, error.kind.to_string())],
    };
    let mut problems = Vec::new();
    let mut outputs = Vec::new();
    for section in &file.sections {
        let result = catch_unwind(AssertUnwindSafe(|| output(&section.case))).map_err(panic_text);
        match &result {
            Err(message) => {
                problems.push(problem(path, section.case.line, format!("`{}` panicked: {message}", section.case.name)));
            }
            Ok(output) if mode == Mode::Compare => problems.extend(compare(section, output)),
            Ok(_) => {}
        }
        outputs.push(result.ok());
    }
    if mode == Mode::Update {
        let updated = file.with_expectations(&outputs);
        if updated != text
            && let Err(error) = std::fs::write(path, updated)
        {
            problems.push(problem(path, 0, format!("cannot be written: {error}")));
        }
    }
    problems
}

fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn compare(section: &Section, actual: &str) -> Option<Problem> {
    let case = &section.case;
    let actual = actual.trim_end();
    let Some(expected) = &section.expected else {
        let message = format!("`{}` has no `---` and no expectation; found:\n{actual}", case.name);
        return Some(problem(&case.path, case.line, message));
    };
    let expected = expected.trim_end();
    if expected == actual {
        return None;
    }
    let (first, shown) = diff::lines(expected, actual);
    let message = format!("`{}` (- expected, + found)\n{shown}", case.name);
    Some(problem(&case.path, section.expected_line + first, message))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the input in upper case, as the output of each test case here.
    fn upper(case: &Case) -> String {
        format!("{}\n", case.input.to_uppercase())
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_correct_file_passes_with_any_whitespace_at_its_end() {
        let dir =
            folder(&[("a.case", "ab\n---\nAB\n\n\n"), ("b/c.case", "#! k = v\nx\ny\n---\nX\nY"), ("d.txt", "no case")]);
        let mut names = Vec::new();
        let problems = run_in(Mode::Compare, dir.path(), |case| {
            names.push((case.name.clone(), case.attribute("k").map(str::to_owned)));
            upper(case)
        });
        assert_eq!(problems, []);
        assert_eq!(names, [("a".to_owned(), None), ("c".to_owned(), Some("v".to_owned()))]);
    }

    #[test]
    fn every_difference_is_listed_with_its_line() {
        let dir = folder(&[
            ("a.case", "#! k = v\none\ntwo\n---\nONE\nTOO\n=== second\nx\n---\nX\n=== third\nz\n---\nY\n"),
            ("b.case", "q\n---\n"),
        ]);
        let problems = run_in(Mode::Compare, dir.path(), upper);
        let shown: Vec<String> = problems
            .iter()
            .map(|p| format!("{}:{} {}", p.path.file_name().unwrap().display(), p.line, p.message))
            .collect();
        assert_eq!(
            shown,
            [
                "a.case:6 `a` (- expected, + found)\n    ONE\n  - TOO\n  + TWO",
                "a.case:14 `a/third` (- expected, + found)\n  - Y\n  + Z",
                "b.case:3 `b` (- expected, + found)\n  + Q",
            ]
        );
    }

    #[test]
    #[should_panic(expected = "1 golden case(s) differ")]
    fn a_difference_fails_the_test() {
        let dir = folder(&[("a.case", "x\n---\nwrong\n")]);
        fail_on(&run_in(Mode::Compare, dir.path(), upper));
    }

    #[test]
    fn a_folder_or_file_without_cases_is_a_failure() {
        assert_eq!(run_in(Mode::Compare, folder(&[]).path(), upper).len(), 1);
        assert_eq!(run_in(Mode::Update, folder(&[]).path(), upper).len(), 1);
        assert_eq!(run_in(Mode::Compare, Path::new("/does/not/exist"), upper).len(), 1);
        let empty = folder(&[("a.case", "\n")]);
        assert_eq!(run_in(Mode::Compare, empty.path(), upper).len(), 1);
    }

    #[test]
    fn a_panic_is_one_problem_and_the_other_cases_run() {
        let dir = folder(&[("a.case", "boom\n---\nX\n=== ok\nb\n---\nwrong\n")]);
        let answer = |case: &Case| {
            if case.input == "boom" { panic!("bang {}", 1) } else { upper(case) }
        };
        let problems = run_in(Mode::Compare, dir.path(), answer);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].message.contains("panicked: bang 1"), "{}", problems[0]);
        let problems = run_in(Mode::Update, dir.path(), answer);
        assert_eq!(problems.len(), 1, "an expectation is not replaced by a panic");
        assert_eq!(fs::read_to_string(dir.path().join("a.case")).unwrap(), "boom\n---\nX\n=== ok\nb\n---\nB\n");
    }

    #[test]
    fn an_update_changes_expectations_and_nothing_else() {
        let before = "#! k = v\n  one \n\\---\n---\nwrong\n\n=== second\n\nx  \n---\nX\n\n\n=== third\nz\n---\n=== fourth\nlast\n";
        let dir = folder(&[("a.case", before)]);
        assert_eq!(run_in(Mode::Update, dir.path(), |case| format!("{}\n=== q\n", upper(case))), []);
        let after = fs::read_to_string(dir.path().join("a.case")).unwrap();
        assert_eq!(
            after,
            "#! k = v\n  one \n\\---\n---\n  ONE \n\\---\n\n\\=== q\n\n=== second\n\nx  \n---\n\nX  \n\n\\=== q\n\n\n\
             === third\nz\n---\nZ\n\n\\=== q\n=== fourth\nlast\n---\nLAST\n\n\\=== q\n"
        );
        assert_eq!(run_in(Mode::Compare, dir.path(), |case| format!("{}\n=== q\n", upper(case))), []);
    }

    #[test]
    fn an_update_of_a_correct_file_writes_the_same_bytes() {
        for text in ["a\n---\nA", "a\n---\nA\n\n \n", "=== n\r\na\n---\nA\n===\nb\n---\nB   \n", "\n\n---"] {
            let dir = folder(&[("a.case", text)]);
            assert_eq!(run_in(Mode::Update, dir.path(), upper), []);
            assert_eq!(fs::read_to_string(dir.path().join("a.case")).unwrap(), text);
        }
    }

    #[test]
    fn a_mistake_in_a_file_is_reported_with_its_line() {
        for (text, line, message) in [
            ("a\n---\nA\n---\nB\n", 4, "`---`"),
            ("#! nonsense\na\n---\nA\n", 1, "attribute"),
            ("a\n---\nA\n=== x\n#! k = 1, k = 2\n", 5, "twice"),
            ("a\n---\nA\n=== x\n", 4, "empty"),
        ] {
            let dir = folder(&[("a.case", text)]);
            let problems = run_in(Mode::Compare, dir.path(), upper);
            assert_eq!(problems.len(), 1, "{text}");
            assert!(problems[0].line == line && problems[0].message.contains(message), "{}", problems[0]);
        }
    }
}

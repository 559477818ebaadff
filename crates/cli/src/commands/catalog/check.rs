//! `tokamak catalog check`: prints every mistake of every file, with its line and correction.
//! Invariant: a mistake in one file does not end the check of the others. A file is valid exactly if a server would load it.

use std::collections::BTreeMap;
use std::path::Path;

use base::{CatalogId, Diagnostic, LineIndex, Span, render_for_people};
use catalog::{Catalog, Rejected, codes};
use serde_json::{Value, json};

use super::find::{self, CatalogText};
use super::taught;
use crate::args::CatalogCheckArgs;
use crate::failure::Failure;
use crate::output::Output;

/// The result of the check of one file.
enum CheckedFile {
    /// The file is a valid catalog. `tokens` is the size of the table that teaches the whole catalog.
    Valid {
        file: String,
        text: String,
        catalog: Box<Catalog>,
        tokens: usize,
    },
    Invalid(Box<Rejected>),
    Unreadable {
        file: String,
        failure: Failure,
    },
}

pub fn run(args: &CatalogCheckArgs, output: &Output) -> Result<(), Failure> {
    let checked = refuse_claimed_names(args.files.iter().map(|path| check(path)).collect());
    if output.json {
        let files: Vec<Value> = checked.iter().map(file_value).collect();
        output.value(&json!({"files": files}));
    } else {
        for file in &checked {
            output.line(&file_text(file, output));
        }
    }
    result_of(checked)
}

fn check(path: &Path) -> CheckedFile {
    let CatalogText { name: file, text } = match find::read_text_of(path) {
        Ok(text) => text,
        Err(failure) => return CheckedFile::Unreadable { file: path.display().to_string(), failure },
    };
    match catalog::read(&file, &text) {
        Err(rejected) => CheckedFile::Invalid(rejected),
        Ok(catalog) => {
            let tokens = taught::full_table(&catalog).map_or(0, |table| taught::count_tokens(&table.text));
            CheckedFile::Valid { file, text, catalog: Box::new(catalog), tokens }
        }
    }
}

/// Marks a file as invalid if its id or an alias is already the id or an alias of an earlier file, because a server would not offer both.
fn refuse_claimed_names(files: Vec<CheckedFile>) -> Vec<CheckedFile> {
    let mut owners: BTreeMap<CatalogId, String> = BTreeMap::new();
    let mut checked = Vec::with_capacity(files.len());
    for checked_file in files {
        let CheckedFile::Valid { file, text, catalog, tokens } = checked_file else {
            checked.push(checked_file);
            continue;
        };
        let names: Vec<&CatalogId> = std::iter::once(&catalog.id).chain(&catalog.aliases).collect();
        let taken: Vec<Diagnostic> = names
            .iter()
            .filter_map(|name| {
                let message = format!("the name `{name}` is claimed by {} already", owners.get(*name)?);
                Some(Diagnostic::error(codes::NAME, span_of_name(&text, name), message))
            })
            .collect();
        for name in names {
            owners.entry(name.clone()).or_insert_with(|| file.clone());
        }
        checked.push(if taken.is_empty() {
            CheckedFile::Valid { file, text, catalog, tokens }
        } else {
            CheckedFile::Invalid(Box::new(Rejected { file, text, diagnostics: taken }))
        });
    }
    checked
}

/// Finds the position of a name on the line `catalog:` or `aliases:`. The text is searched, because `Catalog` has no positions.
fn span_of_name(text: &str, name: &CatalogId) -> Span {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let claims = line.starts_with("catalog:") || line.starts_with("aliases:");
        let offset = line.find(':').and_then(|colon| Some(colon + line[colon..].find(name.as_str())?));
        if let Some(offset) = offset.filter(|_| claims) {
            return Span::new(start + offset, start + offset + name.as_str().len());
        }
        start += line.len();
    }
    Span::default()
}

fn file_text(checked: &CheckedFile, output: &Output) -> String {
    match checked {
        CheckedFile::Valid { file, catalog, tokens, .. } => {
            let (entities, capabilities) = (catalog.entities.len(), catalog.capabilities.len());
            let digest = catalog.digest().short();
            format!(
                "{file}: ok · {} {} · {entities} entities, {capabilities} capabilities · {digest} · {tokens} tokens",
                catalog.id, catalog.version
            )
        }
        CheckedFile::Invalid(rejected) if output.terminal() => {
            render_for_people(&rejected.file, &rejected.text, &rejected.diagnostics, output.colour())
                .trim_end()
                .to_owned()
        }
        CheckedFile::Invalid(rejected) => rejected.lines(),
        CheckedFile::Unreadable { failure, .. } => failure.to_string(),
    }
}

fn file_value(checked: &CheckedFile) -> Value {
    match checked {
        CheckedFile::Valid { file, catalog, tokens, .. } => json!({
            "file": file,
            "ok": true,
            "id": catalog.id,
            "version": catalog.version,
            "entities": catalog.entities.len(),
            "capabilities": catalog.capabilities.len(),
            "digest": catalog.digest(),
            "tokens": tokens,
        }),
        CheckedFile::Invalid(rejected) => {
            let index = LineIndex::new(&rejected.text);
            let diagnostics: Vec<Value> = rejected.diagnostics.iter().map(|d| diagnostic_value(&index, d)).collect();
            json!({"file": rejected.file, "ok": false, "diagnostics": diagnostics})
        }
        CheckedFile::Unreadable { file, failure } => {
            json!({"file": file, "ok": false, "error": {"code": failure.code(), "message": failure.to_string()}})
        }
    }
}

fn diagnostic_value(index: &LineIndex<'_>, diagnostic: &Diagnostic) -> Value {
    let start = index.location(diagnostic.span.start);
    let end = index.location(diagnostic.span.end);
    json!({
        "code": diagnostic.code.to_string(),
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "message": diagnostic.message,
        "alternatives": diagnostic.alternatives,
        "write": diagnostic.copy,
    })
}

/// Returns the result of the command: a failure if a file is not valid.
fn result_of(checked: Vec<CheckedFile>) -> Result<(), Failure> {
    let all = checked.len();
    let invalid = checked.iter().filter(|file| !matches!(file, CheckedFile::Valid { .. })).count();
    if invalid == 0 {
        return Ok(());
    }
    let unreadable = checked.into_iter().find_map(|file| match file {
        CheckedFile::Unreadable { failure, .. } => Some(failure),
        _ => None,
    });
    match unreadable {
        // For a single file that cannot be read, the exit code is that of the reading failure, such as 3 if the file does not exist.
        Some(failure) if all == 1 => Err(failure),
        _ if all == 1 => Err(Failure::Found("the catalog is not valid".to_owned())),
        _ => Err(Failure::Found(format!("{invalid} of {all} files are not valid catalogs"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_name_is_found_in_the_text() {
        let text = "# catalog: tracker\ncatalog: tracker\naliases: [tickets, bugs]\n";
        let position = |name: &str| {
            let location = LineIndex::new(text).location(span_of_name(text, &CatalogId::parse(name).unwrap()).start);
            (location.line, location.column)
        };
        assert_eq!([position("tracker"), position("bugs"), position("other")], [(2, 10), (3, 20), (1, 1)]);
    }
}

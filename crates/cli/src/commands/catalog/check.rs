//! `tokamak catalog check`: every mistake in every file, with its place and what to write.
//! Invariant: one bad file keeps no other from being checked; a file is good exactly when a server would load it.

use std::collections::BTreeMap;
use std::path::Path;

use base::{CatalogId, Diagnostic, LineIndex, Span, render_for_people};
use catalog::{Catalog, Rejected, codes};
use serde_json::{Value, json};

use super::{find, taught, tokens};
use crate::args::CatalogCheck;
use crate::failure::Failure;
use crate::output::Output;

enum Checked {
    Good { file: String, text: String, catalog: Box<Catalog>, tokens: usize },
    Bad(Box<Rejected>),
    Unread { file: String, failure: Failure },
}

pub fn run(args: &CatalogCheck, output: &Output) -> Result<(), Failure> {
    let read: Vec<Checked> = args.files.iter().map(|path| check(path)).collect();
    let checked = one_name_one_file(read);
    if output.json {
        let files: Vec<Value> = checked.iter().map(value).collect();
        output.value(&json!({"files": files}));
    } else {
        for one in &checked {
            output.line(&shown(one, output));
        }
    }
    ended(checked)
}

fn check(path: &Path) -> Checked {
    let (file, text) = match find::text(path) {
        Ok(found) => found,
        Err(failure) => return Checked::Unread { file: path.display().to_string(), failure },
    };
    match catalog::read(&file, &text) {
        Err(rejected) => Checked::Bad(rejected),
        Ok(catalog) => {
            let tokens = taught::whole(&catalog).map_or(0, |taught| tokens::count(&taught.text));
            Checked::Good { file, text, catalog: Box::new(catalog), tokens }
        }
    }
}

/// A file that claims a name which an earlier one has is a bad one: a server would load neither.
fn one_name_one_file(read: Vec<Checked>) -> Vec<Checked> {
    let mut owners: BTreeMap<CatalogId, String> = BTreeMap::new();
    let mut checked = Vec::with_capacity(read.len());
    for one in read {
        let Checked::Good { file, text, catalog, tokens } = one else {
            checked.push(one);
            continue;
        };
        let names: Vec<&CatalogId> = std::iter::once(&catalog.id).chain(&catalog.aliases).collect();
        let taken: Vec<Diagnostic> = names
            .iter()
            .filter_map(|name| {
                let message = format!("the name `{name}` is claimed by {} already", owners.get(*name)?);
                Some(Diagnostic::error(codes::NAME, place_of(&text, name), message))
            })
            .collect();
        for name in names {
            owners.entry(name.clone()).or_insert_with(|| file.clone());
        }
        checked.push(if taken.is_empty() {
            Checked::Good { file, text, catalog, tokens }
        } else {
            Checked::Bad(Box::new(Rejected { file, text, diagnostics: taken }))
        });
    }
    checked
}

/// Where a name is claimed: on the line of `catalog:` or of `aliases:`. The model does not keep places.
fn place_of(text: &str, name: &CatalogId) -> Span {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let claims = line.starts_with("catalog:") || line.starts_with("aliases:");
        let found = line.find(':').and_then(|colon| Some(colon + line[colon..].find(name.as_str())?));
        if let Some(at) = found.filter(|_| claims) {
            return Span::new(start + at, start + at + name.as_str().len());
        }
        start += line.len();
    }
    Span::default()
}

fn shown(checked: &Checked, output: &Output) -> String {
    match checked {
        Checked::Good { file, catalog, tokens, .. } => {
            let (entities, capabilities) = (catalog.entities.len(), catalog.capabilities.len());
            let digest = catalog.digest().short();
            format!(
                "{file}: ok · {} {} · {entities} entities, {capabilities} capabilities · {digest} · {tokens} tokens",
                catalog.id, catalog.version
            )
        }
        Checked::Bad(bad) if output.terminal() => {
            render_for_people(&bad.file, &bad.text, &bad.diagnostics, output.colour()).trim_end().to_owned()
        }
        Checked::Bad(bad) => bad.lines(),
        Checked::Unread { failure, .. } => failure.to_string(),
    }
}

fn value(checked: &Checked) -> Value {
    match checked {
        Checked::Good { file, catalog, tokens, .. } => json!({
            "file": file,
            "ok": true,
            "id": catalog.id,
            "version": catalog.version,
            "entities": catalog.entities.len(),
            "capabilities": catalog.capabilities.len(),
            "digest": catalog.digest(),
            "tokens": tokens,
        }),
        Checked::Bad(bad) => {
            let index = LineIndex::new(&bad.text);
            let found: Vec<Value> = bad.diagnostics.iter().map(|d| diagnostic(&index, d)).collect();
            json!({"file": bad.file, "ok": false, "diagnostics": found})
        }
        Checked::Unread { file, failure } => {
            json!({"file": file, "ok": false, "error": {"code": failure.code(), "message": failure.to_string()}})
        }
    }
}

fn diagnostic(index: &LineIndex<'_>, diagnostic: &Diagnostic) -> Value {
    let (start, end) = (index.location(diagnostic.span.start), index.location(diagnostic.span.end));
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

fn ended(checked: Vec<Checked>) -> Result<(), Failure> {
    let all = checked.len();
    let bad = checked.iter().filter(|one| !matches!(one, Checked::Good { .. })).count();
    if bad == 0 {
        return Ok(());
    }
    let unread = checked.into_iter().find_map(|one| match one {
        Checked::Unread { failure, .. } => Some(failure),
        _ => None,
    });
    match unread {
        // Alone it says by its exit code what it is.
        Some(failure) if all == 1 => Err(failure),
        _ if all == 1 => Err(Failure::Found("the catalog is not valid".to_owned())),
        _ => Err(Failure::Found(format!("{bad} of {all} files are not valid catalogs"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_name_is_found_where_it_is_written() {
        let text = "# catalog: tracker\ncatalog: tracker\naliases: [tickets, bugs]\n";
        let at = |name: &str| {
            let place = LineIndex::new(text).location(place_of(text, &CatalogId::parse(name).unwrap()).start);
            (place.line, place.column)
        };
        assert_eq!([at("tracker"), at("bugs"), at("other")], [(2, 10), (3, 20), (1, 1)]);
    }
}

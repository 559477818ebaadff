//! The pages of the error codes in `docs/errors/`: each code has one, its example gets the code, its corrections
//! compile.
//! Invariant: an answer on a page is the checker's current output; `UPDATE=1` rewrites it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Code, Diagnostic, Limits, render_for_model};
use lang::scope::Scope;
use session::compile_stages;
use teach::{Ledger, Seed};

fn page_path(code: &str) -> PathBuf {
    Path::new("../../docs/errors").join(format!("{code}.md"))
}

/// Returns the scope of a code's examples: the tracker of the golden cases, except for two codes. E0203 needs two
/// catalogs with an entity of the same name, and E0209 needs an entity that was not taught.
fn example_scope(code: &str) -> Scope {
    let read_catalog = |file: &str| {
        let text = std::fs::read_to_string(Path::new("../..").join(file)).unwrap();
        catalog::read(file, &text).unwrap()
    };
    let loaded_catalogs = match code {
        "E0203" => vec![read_catalog("catalogs/demo.yaml"), read_catalog("tests/lang/shop.yaml")],
        _ => vec![read_catalog("tests/lang/catalogs/tracker.yaml")],
    };
    let catalogs: BTreeMap<_, _> = loaded_catalogs.into_iter().map(|c| (c.id.clone(), Arc::new(c))).collect();
    let all_entities = catalogs.values().flat_map(|c| c.entities.keys().map(|e| (c.id.clone(), e.clone())));
    let taught_entities = all_entities.filter(|(_, entity)| code != "E0209" || entity.as_str() == "Ticket");
    let seeds: Vec<Seed> = taught_entities.map(|(catalog, entity)| Seed::new(catalog, entity)).collect();
    Ledger::default().extend(&catalogs, &teach::TeachRequest::all(&seeds)).unwrap().ledger.scope(&catalogs)
}

/// Returns the fenced blocks of a page in this language.
fn fenced_blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let opener = format!("```{language}\n");
    let parts = text.split(opener.as_str()).skip(1);
    parts.map(|part| part.split_once("```").map_or(part, |(block, _)| block).trim_end_matches('\n')).collect()
}

fn check_page(code: Code) {
    let name = code.to_string();
    let text =
        std::fs::read_to_string(page_path(&name)).unwrap_or_else(|_| panic!("{name} has no page in docs/errors"));
    assert!(text.starts_with(&format!("# {name} ")), "the page of {name} begins with another title");
    let programs = fenced_blocks(&text, "plasm");
    let Some(example) = programs.first() else { return };
    let scope = example_scope(&name);
    let diagnostics = compile_stages(&scope, example, &Limits::default()).diagnostics;
    let rendered = render_for_model(example, &diagnostics);
    assert!(diagnostics.iter().any(|d| d.code == code), "{name}: the example gets\n{rendered}");
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        let old = fenced_blocks(&text, "text")[0];
        let old_block = if old.is_empty() { "```text\n```".to_owned() } else { format!("```text\n{old}\n```") };
        let new_block = format!("```text\n{}\n```", rendered.trim_end());
        std::fs::write(page_path(&name), text.replacen(&old_block, &new_block, 1)).unwrap();
    } else {
        assert_eq!(fenced_blocks(&text, "text"), [rendered.trim_end()], "{name}; `UPDATE=1` writes the current output");
    }
    for correction in &programs[1..] {
        let diagnostics = compile_stages(&scope, correction, &Limits::default()).diagnostics;
        assert!(
            !diagnostics.iter().any(Diagnostic::is_error),
            "{name}: {correction}\n{}",
            render_for_model(correction, &diagnostics)
        );
    }
}

#[test]
fn golden_error_pages_match_the_checker() {
    for code in lang::codes::ALL.iter().chain(catalog::codes::ALL) {
        check_page(*code);
    }
}

#[test]
fn every_code_is_in_the_index_and_every_page_has_a_code() {
    let index = std::fs::read_to_string("../../docs/errors.md").unwrap();
    let all = lang::codes::ALL.iter().chain(catalog::codes::ALL).chain(ports::codes::ALL);
    let codes: Vec<String> = all.map(ToString::to_string).collect();
    for code in &codes {
        assert!(index.contains(&format!("[{code}](errors/{code}.md)")), "{code} is not in docs/errors.md");
    }
    for entry in std::fs::read_dir("../../docs/errors").unwrap() {
        let stem = entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(codes.contains(&stem), "docs/errors/{stem}.md is the page of no code");
    }
}

#[test]
fn every_code_is_shown_by_a_golden_case() {
    let folders = ["lang/syntax", "lang/check", "lang/plan"].map(|folder| Path::new("../../tests").join(folder));
    let expectations: Vec<String> =
        folders.iter().flat_map(testkit::golden::with_expectations).map(|(_, expected)| expected).collect();
    for code in lang::codes::ALL {
        let line_start = format!("{code} ");
        let is_shown = expectations.iter().any(|text| text.lines().any(|line| line.starts_with(&line_start)));
        assert!(is_shown, "{code} has no golden case");
    }
}

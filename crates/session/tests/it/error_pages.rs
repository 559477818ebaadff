//! Every code has a page in `docs/errors/`, its example gets that code, and the suggested correction is right.
//! Invariant: an answer on a page is the checker's current output; `UPDATE=1` rewrites it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Code, Diagnostic, Limits, render_for_model};
use lang::scope::Scope;
use session::compile_stages;
use teach::{Ledger, Seed};

fn page(code: &str) -> PathBuf {
    Path::new("../../docs/errors").join(format!("{code}.md"))
}

/// Returns the scope of the examples: the tracker of the golden cases, and another session for two codes.
fn scope(code: &str) -> Scope {
    let read = |file: &str| {
        let text = std::fs::read_to_string(Path::new("../..").join(file)).unwrap();
        catalog::read(file, &text).unwrap()
    };
    let loaded = match code {
        "E0203" => vec![read("catalogs/demo.yaml"), read("tests/lang/shop.yaml")],
        _ => vec![read("tests/lang/catalogs/tracker.yaml")],
    };
    let catalogs: BTreeMap<_, _> = loaded.into_iter().map(|c| (c.id.clone(), Arc::new(c))).collect();
    let all = catalogs.values().flat_map(|c| c.entities.keys().map(|e| (c.id.clone(), e.clone())));
    let taught = all.filter(|(_, entity)| code != "E0209" || entity.as_str() == "Ticket");
    let seeds: Vec<Seed> = taught.map(|(catalog, entity)| Seed::new(catalog, entity)).collect();
    Ledger::default().extend(&catalogs, &teach::TeachRequest::all(&seeds)).unwrap().ledger.scope(&catalogs)
}

/// The fenced blocks of a page with this language.
fn blocks<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let opener = format!("```{word}\n");
    let parts = text.split(opener.as_str()).skip(1);
    parts.map(|part| part.split_once("```").map_or(part, |(block, _)| block).trim_end_matches('\n')).collect()
}

fn check(code: Code) {
    let name = code.to_string();
    let text = std::fs::read_to_string(page(&name)).unwrap_or_else(|_| panic!("{name} has no page in docs/errors"));
    assert!(text.starts_with(&format!("# {name} ")), "the page of {name} begins with another title");
    let programs = blocks(&text, "plasm");
    let Some(wrong) = programs.first() else { return };
    let scope = scope(&name);
    let found = compile_stages(&scope, wrong, &Limits::default()).diagnostics;
    let said = render_for_model(wrong, &found);
    assert!(found.iter().any(|d| d.code == code), "{name}: the example gets\n{said}");
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        let old = blocks(&text, "text")[0];
        let from = if old.is_empty() { "```text\n```".to_owned() } else { format!("```text\n{old}\n```") };
        let to = format!("```text\n{}\n```", said.trim_end());
        std::fs::write(page(&name), text.replacen(&from, &to, 1)).unwrap();
    } else {
        assert_eq!(blocks(&text, "text"), [said.trim_end()], "{name}; `UPDATE=1` writes what was found");
    }
    for right in &programs[1..] {
        let found = compile_stages(&scope, right, &Limits::default()).diagnostics;
        assert!(!found.iter().any(Diagnostic::is_error), "{name}: {right}\n{}", render_for_model(right, &found));
    }
}

#[test]
fn golden_error_pages_match_the_checker() {
    for code in lang::codes::ALL.iter().chain(catalog::codes::ALL) {
        check(*code);
    }
}

#[test]
fn the_index_has_every_page_and_every_page_a_code() {
    let index = std::fs::read_to_string("../../docs/errors.md").unwrap();
    let codes: Vec<String> = lang::codes::ALL.iter().chain(catalog::codes::ALL).map(ToString::to_string).collect();
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
    let shown: Vec<String> =
        folders.iter().flat_map(testkit::golden::with_expectations).map(|(_, said)| said).collect();
    for code in lang::codes::ALL {
        let begins = format!("{code} ");
        let seen = shown.iter().any(|said| said.lines().any(|line| line.starts_with(&begins)));
        assert!(seen, "{code} has no golden case");
    }
}

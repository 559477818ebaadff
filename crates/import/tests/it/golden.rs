//! Small specifications and the drafts made of them, as files: tests/import/NAME.yaml and NAME.catalog.yaml.

use std::path::{Path, PathBuf};

use import::{Import, ImportError, Options};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import")
}

fn made(path: &Path) -> Result<Import, ImportError> {
    let bytes = std::fs::read(path).unwrap();
    let options = Options::default();
    match path.extension().and_then(|end| end.to_str()) {
        Some("graphql") => import::graphql(&bytes, &options),
        _ => import::openapi(&bytes, &options),
    }
}

/// The draft, and below it what became of the rest.
fn shown(made: &Import) -> String {
    let report = &made.report;
    let mut out = made.text.clone();
    out.push_str(&format!(
        "# {} of {} operations, {} deprecated, {} relations, {} references\n",
        report.mapped,
        report.mapped + report.unmapped.len(),
        report.deprecated,
        report.relations,
        report.references
    ));
    for one in &report.unmapped {
        out.push_str(&format!("# not mapped: {}: {}\n", one.operation, one.why));
    }
    for guess in &report.guesses {
        out.push_str(&format!("# guess: {}: {}\n", guess.at, guess.what));
    }
    out
}

#[test]
fn golden_drafts() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".catalog.yaml") || !(name.ends_with(".yaml") || name.ends_with(".graphql")) {
            continue;
        }
        count += 1;
        let made = made(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let wanted = path.with_extension("catalog.yaml");
        let text = shown(&made);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&wanted, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&wanted).unwrap_or_default();
        assert!(kept == text, "{name} gives another draft; run `make golden` and read the diff");
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn a_part_of_a_specification() {
    let bytes = std::fs::read(folder().join("tracker.yaml")).unwrap();
    let only = Options { only: Some("/people*".to_owned()), name: Some("people".to_owned()), ..Options::default() };
    let made = import::openapi(&bytes, &only).unwrap();
    assert_eq!(made.catalog.id.as_str(), "people");
    assert_eq!((made.report.mapped, made.report.left_out), (2, 10));
    assert_eq!(made.catalog.entities.keys().collect::<Vec<_>>(), ["Person"]);
}

#[test]
fn where_a_specification_was_fetched_is_where_its_api_is() {
    let text = r#"{"openapi": "3.0.0", "info": {"title": "T"}, "servers": [{"url": "/v2"}], "paths": {}}"#;
    let from = Options { from: Some("https://api.test/docs/openapi.json".to_owned()), ..Options::default() };
    let made = import::openapi(text.as_bytes(), &from).unwrap();
    assert_eq!((made.catalog.origin.as_str(), made.catalog.base_path.as_str()), ("https://api.test", "/v2"));
    assert!(made.report.share() < f64::EPSILON, "nothing was mapped of nothing");
}

//! Golden tests: the import of each specification tests/import/NAME.yaml must equal NAME.catalog.yaml.

use std::path::{Path, PathBuf};

use import::{Import, ImportError, Options};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import")
}

fn import_file(path: &Path) -> Result<Import, ImportError> {
    let bytes = std::fs::read(path).unwrap();
    let options = Options::default();
    match path.extension().and_then(|end| end.to_str()) {
        Some("graphql") => import::graphql(&bytes, &options),
        _ => import::openapi(&bytes, &options),
    }
}

/// Returns the draft's text, followed by the report as comments.
fn draft_with_report(import: &Import) -> String {
    let report = &import.report;
    let mut out = import.text.clone();
    out.push_str(&format!(
        "# {} of {} operations, {} deprecated, {} relations, {} references\n",
        report.mapped,
        report.mapped + report.unmapped.len(),
        report.deprecated,
        report.relations,
        report.references
    ));
    for unmapped in &report.unmapped {
        out.push_str(&format!("# not mapped: {}: {}\n", unmapped.operation, unmapped.why));
    }
    for guess in &report.guesses {
        out.push_str(&format!("# guess: {}: {}\n", guess.at, guess.what));
    }
    out
}

#[test]
fn each_specification_gives_its_golden_draft() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".catalog.yaml") || !(name.ends_with(".yaml") || name.ends_with(".graphql")) {
            continue;
        }
        count += 1;
        let import = import_file(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let golden_path = path.with_extension("catalog.yaml");
        let text = draft_with_report(&import);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&golden_path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&golden_path).unwrap_or_default();
        assert!(golden == text, "{name} gives another draft; run `make golden` and read the diff");
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn only_selected_operations_are_imported() {
    let bytes = std::fs::read(folder().join("tracker.yaml")).unwrap();
    let only = Options { only: Some("/people*".to_owned()), name: Some("people".to_owned()), ..Options::default() };
    let made = import::openapi(&bytes, &only).unwrap();
    assert_eq!(made.catalog.id.as_str(), "people");
    assert_eq!((made.report.mapped, made.report.left_out), (2, 10));
    assert_eq!(made.catalog.entities.keys().collect::<Vec<_>>(), ["Person"]);
}

#[test]
fn a_relative_server_is_resolved_against_the_url_of_the_specification() {
    let text = r#"{"openapi": "3.0.0", "info": {"title": "T"}, "servers": [{"url": "/v2"}], "paths": {}}"#;
    let from = Options { from: Some("https://api.test/docs/openapi.json".to_owned()), ..Options::default() };
    let made = import::openapi(text.as_bytes(), &from).unwrap();
    assert_eq!((made.catalog.origin.as_str(), made.catalog.base_path.as_str()), ("https://api.test", "/v2"));
    assert!(made.report.share() < f64::EPSILON, "a specification without operations has no share");
}

//! The OpenAPI description is the one that is committed. `UPDATE=1` writes what was found.

use std::path::Path;

#[test]
fn golden_openapi() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wire/openapi.json");
    let made = format!("{}\n", serde_json::to_string_pretty(&server::openapi()).unwrap_or_default());
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        std::fs::write(&path, &made).unwrap_or_else(|error| panic!("{error}"));
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(made, kept, "tests/wire/openapi.json differs; `UPDATE=1` writes what was found");
}

//! Tests of the JSON Schema of catalogs: the schema equals the committed file, accepts valid catalogs, and refuses mistakes.
//! Invariant: the example of docs/catalog.md is among the valid catalogs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The compiled schema, which validates catalogs.
struct Validator {
    schemas: boon::Schemas,
    schema: boon::SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("catalog.json", catalog::schema()).unwrap();
        let schema = compiler.compile("catalog.json", &mut schemas).unwrap();
        Self { schemas, schema }
    }

    fn validate(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.schema).map_err(|error| format!("{error:#}"))
    }
}

/// Returns the example catalog: the first YAML block of the documentation.
fn example() -> String {
    let page = std::fs::read_to_string(repository().join("docs/catalog.md")).unwrap();
    let block = page.split_once("```yaml\n").unwrap().1;
    block.split_once("```").unwrap().0.to_owned()
}

fn as_json(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn golden_the_committed_schema_is_that_of_the_code() {
    let path = repository().join("catalogs/schema.json");
    let expected = serde_json::to_string_pretty(&catalog::schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == expected,
        "catalogs/schema.json differs from the schema of the code; run `make golden` and read the diff"
    );
}

#[test]
fn shipped_catalogs_and_the_example_are_valid() {
    let validator = Validator::new();
    let mut texts = vec![("docs/catalog.md".to_owned(), example())];
    let folders = [repository().join("catalogs"), repository().join("tests/catalogs")];
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            texts.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(texts.len() >= 2);
    for (name, text) in texts {
        catalog::read(&name, &text).unwrap_or_else(|rejected| panic!("{rejected}"));
        validator.validate(&as_json(&text)).unwrap_or_else(|found| panic!("{name}: {found}"));
    }
}

/// Each mistake is one change to a valid catalog. Both the schema and the catalog reader must refuse it.
#[test]
fn the_schema_and_the_reader_refuse_the_same_mistakes() {
    let good = as_json(&example());
    let validator = Validator::new();
    validator.validate(&good).unwrap();
    let mistakes: [(&str, Value); 16] = [
        ("/versoin", json!(3)),
        ("/version", json!("three")),
        ("/title", json!(null)),
        ("/aliases", json!("tickets")),
        ("/auth", json!({"bearer": {"token": "T"}})),
        ("/auth", json!({"password": "T"})),
        ("/pace", json!({"burst": 3})),
        ("/types/State", json!({"select": "open"})),
        ("/entities/Ticket/key", json!("number")),
        ("/entities/Ticket/about", json!(["a", "b"])),
        ("/entities/Ticket/fields/title", json!({"type": "string", "shwo": "artifact"})),
        ("/entities/Ticket/fields/body/show", json!("nowhere")),
        ("/entities/Ticket/relations/comments", json!({"many": "Comment", "through": "comment_list"})),
        ("/capabilities/ticket_list/paging", json!({"pages": "page"})),
        ("/capabilities/ticket_list/params/state", json!({"type": "State", "required": "yes"})),
        ("/capabilities/ticket_open/idempotency", json!({"cookie": "Key"})),
    ];
    for (pointer, wrong) in mistakes {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = wrong.clone();
        assert!(validator.validate(&bad).is_err(), "{pointer}: {wrong} is accepted");
        let text = serde_json::to_string(&bad).unwrap();
        assert!(catalog::read("bad.yaml", &text).is_err(), "the reader accepts {pointer}: {wrong}");
    }
    for pointer in ["/catalog", "/origin", "/entities", "/entities/Ticket/key", "/entities/Ticket/fields"] {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        assert!(validator.validate(&bad).is_err(), "a catalog without {pointer} is accepted");
    }
}

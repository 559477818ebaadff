//! The JSON Schema of the format: it is the one that is committed, takes what the reader takes and refuses what is mistyped.
//! Invariant: the documentation's own example is among what is checked.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema as a judge of texts.
struct Judge {
    schemas: boon::Schemas,
    schema: boon::SchemaIndex,
}

impl Judge {
    fn new() -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("catalog.json", catalog::schema()).unwrap();
        let schema = compiler.compile("catalog.json", &mut schemas).unwrap();
        Self { schemas, schema }
    }

    fn judge(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.schema).map_err(|error| format!("{error:#}"))
    }
}

/// The first YAML block of the documentation.
fn example() -> String {
    let page = std::fs::read_to_string(repository().join("docs/catalog.md")).unwrap();
    let block = page.split_once("```yaml\n").unwrap().1;
    block.split_once("```").unwrap().0.to_owned()
}

fn as_json(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn golden_the_committed_schema_is_the_formats() {
    let path = repository().join("catalogs/schema.json");
    let wanted = serde_json::to_string_pretty(&catalog::schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == wanted, "catalogs/schema.json is not what the code says; run `make golden` and read the diff");
}

#[test]
fn shipped_catalogs_and_the_example_fit() {
    let judge = Judge::new();
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
        judge.judge(&as_json(&text)).unwrap_or_else(|found| panic!("{name}: {found}"));
    }
}

/// Each mistake is one change to a good catalog; what an editor marks red is what the reader refuses.
#[test]
fn mistakes_are_refused() {
    let good = as_json(&example());
    let judge = Judge::new();
    judge.judge(&good).unwrap();
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
    for (place, wrong) in mistakes {
        let mut bad = good.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = wrong.clone();
        assert!(judge.judge(&bad).is_err(), "{place}: {wrong} is accepted");
        let text = serde_json::to_string(&bad).unwrap();
        assert!(catalog::read("bad.yaml", &text).is_err(), "the reader takes {place}: {wrong}");
    }
    for place in ["/catalog", "/origin", "/entities", "/entities/Ticket/key", "/entities/Ticket/fields"] {
        let mut bad = good.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        assert!(judge.judge(&bad).is_err(), "without {place} it is accepted");
    }
}

//! Tests of omitted slots: the table counts them, programs may use them, and the correction of a wrong name lists them.

use std::sync::Arc;

use base::Limits;
use lang::{check, syntax};
use teach::{Catalogs, Ledger, Seed, SlotStyle, TeachRequest, render_wave};

/// Returns a catalog of two entities with the same 20 fields. Each has a key of two parts, a list with 12 filters and an update
/// with 12 parameters.
fn wide_yaml() -> String {
    let fields: String = (0..20).map(|n| format!("      f{n}: string\n")).collect();
    let params: String = (0..12).map(|n| format!("      f{n}: string\n")).collect();
    let query: Vec<String> = (0..12).map(|n| format!("f{n}={{f{n}}}")).collect();
    let body: Vec<String> = (0..12).map(|n| format!("f{n}: \"{{f{n}}}\"")).collect();
    let entity = |name: &str, about: &str| {
        format!(
            "  {name}:\n    about: {about}\n    key: [org, id]\n    fields:\n      org: string\n      id: string\n{fields}"
        )
    };
    let required = "      org: {type: string, required: true}\n";
    let get = |name: &str, path: &str| {
        format!(
            "  {path}_get:\n    get: {name}\n    http: GET /{{org}}/{path}s/{{id}}\n    params:\n{required}      id: {{type: string, required: true}}\n"
        )
    };
    format!(
        "catalog: wide\nversion: 1\ntitle: Wide\norigin: https://api.test\nentities:\n{}{}capabilities:\n{}{}  \
         box_list:\n    query: Box\n    http: GET /{{org}}/boxes?{}\n    params:\n{required}{params}  \
         box_update:\n    update: Box\n    http: PATCH /{{org}}/boxs/{{id}}\n    body: {{{}}}\n    params:\n{params}",
        entity("Box", "a box"),
        entity("Crate", "where boxes are kept"),
        get("Box", "box"),
        get("Crate", "crate"),
        query.join("&"),
        body.join(", "),
    )
}

#[test]
fn an_omitted_slot_is_counted_and_usable_and_listed_by_corrections() {
    let catalog = catalog::read("wide.yaml", &wide_yaml()).unwrap_or_else(|rejected| panic!("{rejected}"));
    let id = catalog.id.clone();
    let seeds = ["Box", "Crate"].map(|entity| Seed::new(id.clone(), entity));
    let catalogs = Catalogs::from([(id, Arc::new(catalog))]);
    let extended = Ledger::default().extend(&catalogs, &TeachRequest::all(&seeds)).unwrap();
    let taught = render_wave(SlotStyle::Names, &Ledger::default(), &extended.ledger, &catalogs, &extended.wave);
    assert_eq!(taught.dropped, Vec::<String>::new());
    let rows: Vec<&str> = taught.text.lines().skip_while(|line| !line.starts_with("plasm_expr")).collect();
    let wanted = [
        "plasm_expr\tMeaning",
        // The description is omitted because it repeats the name. The key parts are omitted because the left cell contains
        // them.
        "e1(org=$,id=$)\tBox → e1 · f0, f1, f2, f3, f4, f5, f6, f7, … 12 more",
        "e1{org=$}\t→ [e1] · opt f0, f1, f2, f3, … 8 more",
        "e1(..).m1()\t→ e1 · update · opt f0, f1, f2, f3, … 8 more",
        "e2(org=$,id=$)\tCrate · where boxes are kept → e2 · fields as e1",
        "```",
    ];
    assert_eq!(rows, wanted);

    let scope = extended.ledger.scope(&catalogs);
    let mistakes = |program: &str| {
        let parsed = syntax::parse(program, &Limits::default());
        check::check(&scope, &parsed.program).err().map(|found| base::render_for_model(program, &found))
    };
    assert_eq!(mistakes(r#"e1{org="a", f11="x"}[org, f19]"#), None, "an omitted slot works by its name");
    assert_eq!(mistakes(r#"e1(org="a", id="b").m1(f11="x")"#), None);
    let all = |most: usize| (0..most).map(|n| format!("f{n}")).collect::<Vec<_>>().join(", ");
    let field = mistakes(r#"e1(org="a", id="b")[nonsense]"#).unwrap();
    assert!(field.contains(&format!("all: org, id, {}", all(20))), "{field}");
    let filter = mistakes(r#"e1{org="a", nonsense="x"}"#).unwrap();
    assert!(filter.contains(&format!("all: org, {}", all(12))), "{filter}");
    let argument = mistakes(r#"e1(org="a", id="b").m1(nonsense="x")"#).unwrap();
    assert!(argument.contains(&format!("all: {}", all(12))), "{argument}");
}

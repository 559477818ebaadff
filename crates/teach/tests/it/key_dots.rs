//! Tests of `..` in a table: the rows in which it replaces key slots, and the correction of a program that copies `..`.

use std::sync::Arc;

use base::Limits;
use lang::{check, syntax};
use teach::{Catalogs, Ledger, Seed, SlotStyle, TeachRequest, render_wave};

/// Returns a catalog with this number of entities. Each entity has a key of three parts, a get, a list, a list in a room, a
/// create and two calls without arguments.
fn houses_yaml(entities: usize) -> String {
    let mut out = "catalog: houses\nversion: 1\ntitle: Houses\norigin: https://api.test\nentities:\n".to_owned();
    let required = |name: &str| format!("      {name}: {{type: string, required: true}}\n");
    let street = required("street");
    let house = required("house");
    let mut calls = String::from("capabilities:\n");
    for n in 1..=entities {
        out.push_str(&format!(
            "  Door{n}:\n    about: a way in\n    key: [street, house, id]\n    fields: {{street: string, house: string, id: string, colour: string}}\n"
        ));
        let path = format!("/{{street}}/{{house}}/doors{n}");
        calls.push_str(&format!(
            "  door{n}_get:\n    get: Door{n}\n    http: GET {path}/{{id}}\n    params:\n{street}{house}{}  \
             door{n}_list:\n    query: Door{n}\n    about: List door{n} of a house\n    http: GET {path}\n    params:\n{street}{house}  \
             door{n}_room:\n    query: Door{n}\n    http: GET {path}/rooms/{{room}}\n    params:\n{street}{house}{}  \
             door{n}_create:\n    create: Door{n}\n    http: POST {path}\n    body: {{colour: \"{{colour}}\"}}\n    params:\n{street}{house}{}  \
             door{n}_lock:\n    action: Door{n}\n    about: lock a door{n}\n    http: POST {path}/{{id}}/lock\n  \
             door{n}_open:\n    action: Door{n}\n    http: POST {path}/{{id}}/open\n",
            required("id"),
            required("room"),
            required("colour"),
        ));
    }
    out + &calls
}

fn catalogs(entities: usize) -> Catalogs {
    let catalog = catalog::read("houses.yaml", &houses_yaml(entities)).unwrap_or_else(|rejected| panic!("{rejected}"));
    Catalogs::from([(catalog.id.clone(), Arc::new(catalog))])
}

fn seeds(catalogs: &Catalogs, numbers: impl IntoIterator<Item = usize>) -> Vec<Seed> {
    let id = catalogs.keys().next().unwrap();
    numbers.into_iter().map(|n| Seed::new(id.clone(), format!("Door{n}"))).collect()
}

fn taught_wave(style: SlotStyle, before: &Ledger, catalogs: &Catalogs, seeds: &[Seed]) -> (Ledger, String) {
    let extended = before.extend(catalogs, &TeachRequest::all(seeds)).unwrap();
    let taught = render_wave(style, before, &extended.ledger, catalogs, &extended.wave);
    assert_eq!(taught.dropped, Vec::<String>::new());
    (extended.ledger, taught.text)
}

fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('e')).collect()
}

const EXPLANATION: &str = ".. is that key without its last slot";

#[test]
fn leading_slots_are_abbreviated_from_the_sixth_row_on() {
    let catalogs = catalogs(3);
    let (ledger, first) = taught_wave(SlotStyle::Names, &Ledger::default(), &catalogs, &seeds(&catalogs, [1]));
    assert!(!first.contains(EXPLANATION), "{first}");
    assert_eq!(
        rows(&first),
        [
            "e1(street=$,house=$,id=$)\tDoor1 · a way in → e1 · colour",
            "e1{street=$,house=$}\t→ [e1]",
            "e1{street=$,house=$,room=$}\t→ [e1]",
            "e1.m1(street=$,house=$,colour=$)\t→ e1 · create",
            "e1(..).m2()\t→ () · lock · .m3() open",
        ]
    );
    // With the second wave the session has enough rows for abbreviated keys. The wave spells out each key before it abbreviates
    // the key.
    let (ledger, second) = taught_wave(SlotStyle::Names, &ledger, &catalogs, &seeds(&catalogs, [2]));
    assert_eq!(second.matches(EXPLANATION).count(), 1, "{second}");
    assert_eq!(
        rows(&second),
        [
            "e2(street=$,house=$,id=$)\tDoor2 · a way in → e2 · colour",
            "e2{..}\t→ [e2]",
            "e2{..,room=$}\t→ [e2]",
            "e2.m4(..,colour=$)\t→ e2 · create",
            "e2(..).m5()\t→ () · lock · .m6() open",
        ]
    );
    let (ledger, third) = taught_wave(SlotStyle::Names, &ledger, &catalogs, &seeds(&catalogs, [3]));
    assert!(!third.contains(EXPLANATION) && third.contains("e3{..}"), "{third}");
    let replay = render_wave(SlotStyle::Names, &Ledger::default(), &ledger, &catalogs, &ledger.to_wave(&catalogs));
    assert_eq!(replay.dropped, Vec::<String>::new());
    assert_eq!(replay.text.matches(EXPLANATION).count(), 1, "{}", replay.text);
    assert!(replay.text.contains("e1{..}"), "{}", replay.text);
}

#[test]
fn a_table_in_symbols_abbreviates_leading_slots() {
    let catalogs = catalogs(2);
    let (_, text) = taught_wave(SlotStyle::Symbols, &Ledger::default(), &catalogs, &seeds(&catalogs, [1, 2]));
    let lists: Vec<&str> = rows(&text).into_iter().filter(|row| row.contains("..")).collect();
    let wanted = ["e1{..}\t→ [e1]", "e1{..,p4=$}\t→ [e1] · p4 room", "e1.m1(..,p1=$)\t→ e1 · create"];
    assert_eq!(lists[..3], wanted, "{text}");
}

#[test]
fn dots_stand_for_the_key_without_its_last_slot() {
    let catalogs = catalogs(2);
    let (ledger, _) = taught_wave(SlotStyle::Names, &Ledger::default(), &catalogs, &seeds(&catalogs, [1, 2]));
    let scope = ledger.scope(&catalogs);
    let mut lines = check::TaughtLines::new(&scope);
    let mut is_taught = |line: &str| {
        let parsed = syntax::parse_taught(line, &Limits::default());
        parsed.diagnostics.is_empty() && lines.check(&parsed.program).is_ok()
    };
    for right in ["e1{..}", "e1{..,room=$}", "e1.m1(..,colour=$)", "e1(..).m2()"] {
        assert!(is_taught(right), "{right}");
    }
    // The dots are exactly the key's slots without the last, so a line with a missing or an additional slot is refused.
    for wrong in ["e1{..,id=$}", "e1{..,house=$}", "e1.m1(..)", "e1.m1(..,street=$,colour=$)", "e1(..).m2(..)"] {
        assert!(!is_taught(wrong), "{wrong}");
    }
    let correction = |program: &str| {
        let limits = Limits::default();
        let parsed = syntax::parse(program, &limits);
        assert_eq!(parsed.diagnostics, [], "{program}");
        let diagnostics = check::check(&scope, &parsed.program).unwrap_err();
        base::render_for_model(program, &check::add_corrections(&scope, program, &limits, diagnostics))
    };
    let list = correction("e1{..}.limit(3)");
    assert_eq!(list, "E0309 1:4 `..` stands for `street`, `house`; write: e1{street=$, house=$}.limit(3)");
    let room = correction(r#"e1{.., room="hall"}"#);
    assert_eq!(room, r#"E0309 1:4 `..` stands for `street`, `house`; write: e1{street=$, house=$, room="hall"}"#);
    let create = correction(r#"e1.m1(.., colour="red")"#);
    assert_eq!(create, r#"E0309 1:7 `..` stands for `street`, `house`; write: e1.m1(street=$, house=$, colour="red")"#);
}

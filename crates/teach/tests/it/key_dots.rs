//! `..`: what a table writes for slots that it has spelled out before, what a program is told that copies it.

use std::sync::Arc;

use base::Limits;
use lang::{check, syntax};
use teach::{Catalogs, Ledger, Seed, SlotStyle, TeachRequest, render_wave};

/// So many entities with a key of three parts, a get, a list, a list in a room, a create and two calls that take nothing.
fn houses(entities: usize) -> String {
    let mut out = "catalog: houses\nversion: 1\ntitle: Houses\norigin: https://api.test\nentities:\n".to_owned();
    let required = |name: &str| format!("      {name}: {{type: string, required: true}}\n");
    let (street, house) = (required("street"), required("house"));
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
    let catalog = catalog::read("houses.yaml", &houses(entities)).unwrap_or_else(|rejected| panic!("{rejected}"));
    Catalogs::from([(catalog.id.clone(), Arc::new(catalog))])
}

fn seeds(catalogs: &Catalogs, numbers: impl IntoIterator<Item = usize>) -> Vec<Seed> {
    let id = catalogs.keys().next().unwrap();
    numbers.into_iter().map(|n| Seed::new(id.clone(), format!("Door{n}"))).collect()
}

fn wave(style: SlotStyle, before: &Ledger, catalogs: &Catalogs, seeds: &[Seed]) -> (Ledger, String) {
    let extended = before.extend(catalogs, &TeachRequest::all(seeds)).unwrap();
    let taught = render_wave(style, before, &extended.ledger, catalogs, &extended.wave);
    assert_eq!(taught.dropped, Vec::<String>::new());
    (extended.ledger, taught.text)
}

fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('e')).collect()
}

const SAYS: &str = ".. is that key without its last slot";

#[test]
fn leading_slots_are_spelled_out_once_where_that_pays() {
    let catalogs = catalogs(3);
    let (ledger, first) = wave(SlotStyle::Names, &Ledger::default(), &catalogs, &seeds(&catalogs, [1]));
    assert!(!first.contains(SAYS), "{first}");
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
    // The second wave has enough of them in all; it spells out what it abbreviates.
    let (ledger, second) = wave(SlotStyle::Names, &ledger, &catalogs, &seeds(&catalogs, [2]));
    assert_eq!(second.matches(SAYS).count(), 1, "{second}");
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
    let (ledger, third) = wave(SlotStyle::Names, &ledger, &catalogs, &seeds(&catalogs, [3]));
    assert!(!third.contains(SAYS) && third.contains("e3{..}"), "{third}");
    let replay = render_wave(SlotStyle::Names, &Ledger::default(), &ledger, &catalogs, &ledger.to_wave(&catalogs));
    assert_eq!(replay.dropped, Vec::<String>::new());
    assert_eq!(replay.text.matches(SAYS).count(), 1, "{}", replay.text);
    assert!(replay.text.contains("e1{..}"), "{}", replay.text);
}

#[test]
fn in_symbols_too() {
    let catalogs = catalogs(2);
    let (_, text) = wave(SlotStyle::Symbols, &Ledger::default(), &catalogs, &seeds(&catalogs, [1, 2]));
    let lists: Vec<&str> = rows(&text).into_iter().filter(|row| row.contains("..")).collect();
    let wanted = ["e1{..}\t→ [e1]", "e1{..,p4=$}\t→ [e1] · p4 room", "e1.m1(..,p1=$)\t→ e1 · create"];
    assert_eq!(lists[..3], wanted, "{text}");
}

#[test]
fn what_the_dots_stand_for_is_what_the_row_says() {
    let catalogs = catalogs(2);
    let (ledger, _) = wave(SlotStyle::Names, &Ledger::default(), &catalogs, &seeds(&catalogs, [1, 2]));
    let scope = ledger.scope(&catalogs);
    let mut lines = check::TaughtLines::new(&scope);
    let mut taught = |line: &str| {
        let parsed = syntax::parse_taught(line, &Limits::default());
        parsed.diagnostics.is_empty() && lines.check(&parsed.program).is_ok()
    };
    for right in ["e1{..}", "e1{..,room=$}", "e1.m1(..,colour=$)", "e1(..).m2()"] {
        assert!(taught(right), "{right}");
    }
    // A slot too few or too many is no line to teach: the dots are exactly the key's slots without its last.
    for wrong in ["e1{..,id=$}", "e1{..,house=$}", "e1.m1(..)", "e1.m1(..,street=$,colour=$)", "e1(..).m2(..)"] {
        assert!(!taught(wrong), "{wrong}");
    }
    let told = |program: &str| {
        let limits = Limits::default();
        let parsed = syntax::parse(program, &limits);
        assert_eq!(parsed.diagnostics, [], "{program}");
        let found = check::check(&scope, &parsed.program).unwrap_err();
        base::render_for_model(program, &check::add_corrections(&scope, program, &limits, found))
    };
    let list = told("e1{..}.limit(3)");
    assert_eq!(list, "E0309 1:4 `..` stands for `street`, `house`; write: e1{street=$, house=$}.limit(3)");
    let room = told(r#"e1{.., room="hall"}"#);
    assert_eq!(room, r#"E0309 1:4 `..` stands for `street`, `house`; write: e1{street=$, house=$, room="hall"}"#);
    let create = told(r#"e1.m1(.., colour="red")"#);
    assert_eq!(create, r#"E0309 1:7 `..` stands for `street`, `house`; write: e1.m1(street=$, house=$, colour="red")"#);
}

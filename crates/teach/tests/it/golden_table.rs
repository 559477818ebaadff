//! Golden tests of the taught table, and tests of symbols that stay stable. Each line of a golden input is one `plasm_context`
//! call.

use std::collections::BTreeMap;

use teach::{Ledger, TeachRequest, render_wave};

use crate::support::{ContextCall, catalogs, seeds};

#[test]
fn golden_table() {
    let catalogs = catalogs();
    testkit::golden::run("../../tests/teach", |case| {
        let mut ledger = Ledger::default();
        let mut out = Vec::new();
        for call in case.input.lines().map(|line| ContextCall::parse(line, &catalogs)) {
            match ledger.extend(&catalogs, &call.request()) {
                Ok(extended) if extended.wave.is_empty() => out.push("(nothing new)".to_owned()),
                Ok(extended) => {
                    let rendered = render_wave(call.style, &ledger, &extended.ledger, &catalogs, &extended.wave);
                    assert_eq!(rendered.dropped, Vec::<String>::new(), "every taught line checks");
                    out.push(rendered.text);
                    ledger = extended.ledger;
                }
                Err(error) => out.push(error.to_string()),
            }
        }
        out.join("\n")
    });
}

#[test]
fn symbols_do_not_change_and_do_not_depend_on_the_order_of_seeds() {
    let catalogs = catalogs();
    let all = "demo:Ticket other:Person demo:Person other:Ticket demo:Comment";
    let forward = Ledger::default().extend(&catalogs, &TeachRequest::all(&seeds(all))).unwrap();
    let backward: Vec<&str> = all.split(' ').rev().collect();
    let backward = Ledger::default().extend(&catalogs, &TeachRequest::all(&seeds(&backward.join(" ")))).unwrap();
    assert_eq!(forward.ledger, backward.ledger);
    assert_eq!(forward.wave, backward.wave);
    let mut ledger = Ledger::default();
    let mut meanings: BTreeMap<String, String> = BTreeMap::new();
    for seed in all.split(' ') {
        ledger = ledger.extend(&catalogs, &TeachRequest::all(&seeds(seed))).unwrap().ledger;
        let scope = ledger.scope(&catalogs);
        let entities = scope.entities.iter().map(|e| (e.symbol.clone(), format!("{}:{}", e.catalog.id, e.entity)));
        let slots = scope.slots.iter().map(|(symbol, m)| (symbol, format!("{}:{}", m.catalog, m.name)));
        for (symbol, meaning) in entities.chain(slots) {
            let first = meanings.entry(symbol.clone()).or_insert_with(|| meaning.clone());
            assert_eq!(*first, meaning, "{symbol} changed its meaning");
        }
    }
}

/// `odd:Key` is described in the row of a method of an earlier wave. The method stays `m2`, although the caller may no longer
/// use `m1`.
#[test]
fn a_method_that_is_written_again_keeps_its_symbol() {
    let catalogs = catalogs();
    let mut ledger = Ledger::default();
    for words in ["odd:Signal", "odd:Door"] {
        ledger = ledger.extend(&catalogs, &TeachRequest::all(&seeds(words))).unwrap().ledger;
    }
    let permissions = catalog::Permissions::new(None, Some(&["door_*", "house_*", "setting_*"]), false);
    let visible: teach::Catalogs =
        catalogs.iter().filter_map(|(id, c)| Some((id.clone(), permissions.view(c)?))).collect();
    let extended = ledger.extend(&visible, &TeachRequest::all(&seeds("odd:Key"))).unwrap();
    let table = render_wave(teach::SlotStyle::Names, &ledger, &extended.ledger, &visible, &extended.wave);
    assert!(table.dropped.is_empty(), "{:?}", table.dropped);
    // `m1` is the method `signal_send`. The caller may no longer use it.
    assert!(
        table.text.contains("e2(house=$,number=$).m2()\t→ e3 · have a key made · Key: id, teeth int"),
        "{}",
        table.text
    );
}

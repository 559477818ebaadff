//! The sessions in which golden cases of the language are checked.
//! Invariant: the attributes of a case alone determine its session.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use lang::scope::Scope;
use teach::{Ledger, Seed};

/// 2026-11-15T12:30:45.678Z, a Sunday.
const NOW: base::Timestamp = base::Timestamp(1_794_745_845_678);

/// A session that was taught all catalogs, or only the demo's entities that `teach = …` names, or no writes (`writes
/// = untaught`).
pub fn scope(case: &testkit::golden::Case) -> Scope {
    let attribute = |name: &str| case.attribute(name).unwrap_or_default().to_owned();
    let key = ["catalog", "with", "teach", "writes"].map(attribute);
    KNOWN.with_borrow_mut(|known| known.entry(key).or_insert_with(|| made(case)).clone())
}

thread_local! {
    /// Cached, since reading and teaching catalogs costs more than most cases.
    static KNOWN: RefCell<BTreeMap<[String; 4], Scope>> = const { RefCell::new(BTreeMap::new()) };
}

fn made(case: &testkit::golden::Case) -> Scope {
    let demo = catalog::read("demo.yaml", include_str!("../../../../../catalogs/demo.yaml")).unwrap();
    let shop = catalog::read("shop.yaml", include_str!("../../../../../tests/lang/shop.yaml")).unwrap();
    let tracker =
        || catalog::read("tracker.yaml", include_str!("../../../../../tests/lang/catalogs/tracker.yaml")).unwrap();
    let loaded = match (case.attribute("catalog"), case.attribute("with")) {
        (Some("tracker"), Some("shop")) => vec![tracker(), shop],
        (Some("tracker"), _) => vec![tracker()],
        (_, Some("shop")) => vec![demo, shop],
        _ => vec![demo],
    };
    let wanted: Option<Vec<&str>> = case.attribute("teach").map(|names| names.split(' ').collect());
    let catalogs: BTreeMap<_, _> = loaded.into_iter().map(|c| (c.id.clone(), Arc::new(c))).collect();
    let all = catalogs.values().flat_map(|c| c.entities.keys().map(|e| (c.id.clone(), e.clone())));
    let taught = all.filter(|(_, entity)| wanted.as_ref().is_none_or(|w| w.contains(&entity.as_str())));
    let seeds: Vec<Seed> = taught.map(|(catalog, entity)| Seed::new(catalog, entity)).collect();
    let mut ask = teach::TeachRequest::all(&seeds);
    // An empty intent mentions nothing, so no write is taught.
    ask.intent = (case.attribute("writes") == Some("untaught")).then_some("");
    let mut scope = Ledger::default().extend(&catalogs, &ask).unwrap().ledger.scope(&catalogs);
    scope.now = Some(NOW);
    scope.registry = Some(Arc::new(catalog::Registry::new(catalogs.into_values()).unwrap()));
    scope
}

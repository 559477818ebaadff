//! The sessions in which golden cases of the language are checked.
//! Invariant: the attributes of a case alone determine its session.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use lang::scope::Scope;
use teach::{Ledger, Seed};

/// The time of every session: 2026-11-15T12:30:45.678Z, a Sunday.
const NOW: base::Timestamp = base::Timestamp(1_794_745_845_678);

thread_local! {
    /// The scopes by the attributes that determine them. Reading and teaching catalogs costs more than most cases.
    static CACHED_SCOPES: RefCell<BTreeMap<[String; 4], Scope>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns the scope of a session that was taught all entities of the case's catalogs. The attribute `teach` limits the
/// entities, and `writes = untaught` leaves out the writes.
pub fn scope(case: &testkit::golden::Case) -> Scope {
    let attribute = |name: &str| case.attribute(name).unwrap_or_default().to_owned();
    let key = ["catalog", "with", "teach", "writes"].map(attribute);
    CACHED_SCOPES.with_borrow_mut(|scopes| scopes.entry(key).or_insert_with(|| teach_session(case)).clone())
}

fn teach_session(case: &testkit::golden::Case) -> Scope {
    let demo = catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap();
    let shop = catalog::read("shop.yaml", include_str!("../../../../tests/lang/shop.yaml")).unwrap();
    let tracker =
        || catalog::read("tracker.yaml", include_str!("../../../../tests/lang/catalogs/tracker.yaml")).unwrap();
    let loaded_catalogs = match (case.attribute("catalog"), case.attribute("with")) {
        (Some("tracker"), Some("shop")) => vec![tracker(), shop],
        (Some("tracker"), _) => vec![tracker()],
        (_, Some("shop")) => vec![demo, shop],
        _ => vec![demo],
    };
    let listed_entities: Option<Vec<&str>> = case.attribute("teach").map(|names| names.split(' ').collect());
    let catalogs: BTreeMap<_, _> = loaded_catalogs.into_iter().map(|c| (c.id.clone(), Arc::new(c))).collect();
    let all_entities = catalogs.values().flat_map(|c| c.entities.keys().map(|e| (c.id.clone(), e.clone())));
    let taught_entities =
        all_entities.filter(|(_, entity)| listed_entities.as_ref().is_none_or(|l| l.contains(&entity.as_str())));
    let seeds: Vec<Seed> = taught_entities.map(|(catalog, entity)| Seed::new(catalog, entity)).collect();
    let mut request = teach::TeachRequest::all(&seeds);
    // Writes are taught if the intent mentions them, and an empty intent mentions nothing.
    request.intent = (case.attribute("writes") == Some("untaught")).then_some("");
    let mut scope = Ledger::default().extend(&catalogs, &request).unwrap().ledger.scope(&catalogs);
    scope.now = Some(NOW);
    scope.registry = Some(Arc::new(catalog::Registry::new(catalogs.into_values()).unwrap()));
    scope
}

//! Tests of the shipped catalogs and those of `tests/catalogs`: each catalog is valid, and each capability has a
//! recorded case.
//! Invariant: these tests fail for a capability without a recorded answer, for a field without a value in any
//! recorded answer, for a catalog with pages whose cases request no second page, and for a catalog without a case
//! with a hostile value.

mod recorded;

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Catalog, Row, RowForm};
use recorded::Recorded;
use serde_json::Value;
use testkit::golden::Case;

const CATALOG_FOLDERS: [&str; 2] = ["../../catalogs", "../../tests/catalogs"];
const CASE_FOLDERS: [&str; 2] = ["../../catalogs/cases", "../../tests/catalogs"];

/// A value that would change the address of a request if it were inserted without encoding.
const HOSTILE_VALUE: &str = "../x?y#z";

/// The fields that need no value in a recorded answer, as catalog and field name. A comment beside each entry gives
/// the reason.
const NEVER_FILLED: &[(&str, &str)] = &[];

/// Reads all catalogs. The key of each catalog is its file name without `.yaml`.
fn read_catalogs() -> BTreeMap<String, Catalog> {
    let files =
        CATALOG_FOLDERS.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let catalogs = files.filter(|path| path.extension().is_some_and(|e| e == "yaml")).map(|path| {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let read = catalog::read(&path.display().to_string(), &text).unwrap_or_else(|rejected| panic!("{rejected}"));
        (stem, read)
    });
    catalogs.collect()
}

fn catalog_of<'c>(catalogs: &'c BTreeMap<String, Catalog>, case: &Case) -> &'c Catalog {
    let stem = case.path.file_stem().unwrap().to_string_lossy().into_owned();
    catalogs.get(&stem).unwrap_or_else(|| panic!("no catalog `{stem}` for these cases"))
}

#[test]
fn every_shipped_catalog_is_valid_and_named_by_its_file() {
    let catalogs = read_catalogs();
    assert!(!catalogs.is_empty());
    for (stem, catalog) in &catalogs {
        assert_eq!(catalog.id.as_str(), stem);
        let undescribed_writes = catalog.capabilities.values().filter(|c| !c.kind.is_read() && c.about.is_empty());
        assert_eq!(
            undescribed_writes.map(|c| c.name.as_str()).collect::<Vec<_>>(),
            Vec::<&str>::new(),
            "{stem}: writes say what they do"
        );
    }
    catalog::Registry::new(catalogs.into_values().map(std::sync::Arc::new)).unwrap();
}

#[test]
fn golden_recorded_cases() {
    let catalogs = read_catalogs();
    for folder in CASE_FOLDERS {
        testkit::golden::run(folder, |case| Recorded::read(catalog_of(&catalogs, case), case).render());
    }
}

/// The parts of one catalog that its cases cover.
#[derive(Default)]
struct CaseCoverage {
    /// The capabilities with a recorded answer.
    answered: BTreeSet<String>,
    /// The capabilities with an answer that has a next page.
    with_next_page: BTreeSet<String>,
    /// The fields with a value in some answer, as `Entity.field`.
    filled: BTreeSet<String>,
    has_hostile_value: bool,
}

fn measure_coverage(catalogs: &BTreeMap<String, Catalog>) -> BTreeMap<String, CaseCoverage> {
    let mut all: BTreeMap<String, CaseCoverage> =
        catalogs.keys().map(|id| (id.clone(), CaseCoverage::default())).collect();
    for case in CASE_FOLDERS.iter().flat_map(testkit::golden::cases) {
        let catalog = catalog_of(catalogs, &case);
        let recorded = Recorded::read(catalog, &case);
        let Some(coverage) = all.get_mut(catalog.id.as_str()) else { continue };
        let name = &recorded.capability.name;
        coverage.has_hostile_value |= case.input.contains(HOSTILE_VALUE);
        if recorded.response.is_some() {
            coverage.answered.insert(name.clone());
        }
        if recorded.render().contains("\nnext ") {
            coverage.with_next_page.insert(name.clone());
        }
        recorded
            .rows()
            .iter()
            .for_each(|row| note_filled(catalog, &recorded.capability.returns, row, &mut coverage.filled));
    }
    all
}

fn note_filled(catalog: &Catalog, entity: &str, row: &Row, filled: &mut BTreeSet<String>) {
    let Some(entity) = catalog.entity(entity) else { return };
    for (name, value) in row.iter().filter(|(_, value)| !value.is_null() && **value != Value::Array(Vec::new())) {
        filled.insert(format!("{}.{name}", entity.name));
        let Some(relation) = entity.relations.get(name) else { continue };
        for inner in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
            note_filled(catalog, &relation.target, inner, filled);
        }
    }
}

#[test]
fn every_capability_has_a_recorded_answer() {
    let catalogs = read_catalogs();
    let coverage = measure_coverage(&catalogs);
    let lacking: Vec<String> = catalogs
        .iter()
        .flat_map(|(id, c)| c.capabilities.keys().map(move |name| (id, name)))
        .filter(|(id, name)| !coverage[*id].answered.contains(*name))
        .map(|(id, name)| format!("{id}: {name}"))
        .collect();
    assert_eq!(lacking, Vec::<String>::new());
}

#[test]
fn every_field_is_filled_by_some_answer() {
    let catalogs = read_catalogs();
    let coverage = measure_coverage(&catalogs);
    let mut lacking = Vec::new();
    for (id, catalog) in &catalogs {
        let fields = catalog.entities.values().flat_map(|e| e.fields.keys().map(move |f| format!("{}.{f}", e.name)));
        let excepted = |field: &String| NEVER_FILLED.contains(&(id.as_str(), field.as_str()));
        lacking
            .extend(fields.filter(|f| !coverage[id].filled.contains(f) && !excepted(f)).map(|f| format!("{id}: {f}")));
    }
    assert_eq!(lacking, Vec::<String>::new());
}

#[test]
fn every_catalog_has_a_next_page_if_it_has_pages_and_a_hostile_value() {
    let catalogs = read_catalogs();
    let coverage = measure_coverage(&catalogs);
    for (id, catalog) in &catalogs {
        let pages = catalog.capabilities.values().any(|c| c.paging.is_some() && c.rows.form != RowForm::Nothing);
        assert!(!pages || !coverage[id].with_next_page.is_empty(), "{id}: no case asks for a second page");
        assert!(coverage[id].has_hostile_value, "{id}: no case has the value `{HOSTILE_VALUE}`");
    }
}

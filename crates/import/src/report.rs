//! The report of an import: the counts of operations, the unmapped operations with reasons, and the guesses to check.
//! Invariant: every operation is counted exactly once, as mapped, deprecated, left out on request, or unmapped.

use std::collections::HashSet;

use catalog::{Catalog, Kind, Type, Via};
use serde::Serialize;

/// An operation without a capability in the draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmapped {
    /// The label of the operation: `GET /tickets/{number}`, or `query ticket`.
    pub operation: String,
    /// The reason, for a person.
    pub why: String,
}

/// An assumption of the importer that a person should check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// The subject of the assumption: an entity, an operation, or a key of the catalog's head (`origin`, `auth`).
    pub at: String,
    /// The assumption, for a person.
    pub what: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportReport {
    /// The number of operations in the specification, including deprecated ones.
    pub operations: usize,
    pub deprecated: usize,
    /// The number of operations that `--only` and `--tag` excluded.
    pub left_out: usize,
    /// The number of operations that at least one capability of the draft calls.
    pub mapped: usize,
    pub unmapped: Vec<Unmapped>,
    pub entities: usize,
    pub capabilities: usize,
    /// The number of relations that are read by a query of the target entity.
    pub relations: usize,
    /// The number of fields that refer to another entity.
    pub references: usize,
    /// The names of entities without a query or a search.
    pub without_list: Vec<String>,
    /// The names of entities without a get.
    pub without_get: Vec<String>,
    pub guesses: Vec<Guess>,
}

impl ImportReport {
    /// Returns the mapped share (0 to 1) of the operations that are neither deprecated nor excluded. It is 0 if there are no
    /// such operations.
    pub fn share(&self) -> f64 {
        self.mapped as f64 / (self.mapped + self.unmapped.len()).max(1) as f64
    }

    /// Fills the counts of entities, capabilities, relations and references from the catalog.
    pub(crate) fn count_parts(&mut self, catalog: &Catalog) {
        self.entities = catalog.entities.len();
        self.capabilities = catalog.capabilities.len();
        for entity in catalog.entities.values() {
            let by_query = entity.relations.values().filter(|relation| !matches!(relation.via, Via::Key { .. }));
            self.relations += by_query.count();
            self.references += entity.fields.values().filter(|field| is_reference(&field.kind)).count();
        }
        let listed = entities_with(catalog, &[Kind::Query, Kind::Search]);
        let readable = entities_with(catalog, &[Kind::Get]);
        for name in catalog.entities.keys() {
            if !listed.contains(name.as_str()) {
                self.without_list.push(name.clone());
            }
            if !readable.contains(name.as_str()) {
                self.without_get.push(name.clone());
            }
        }
    }
}

fn is_reference(kind: &Type) -> bool {
    match kind {
        Type::Ref(_) => true,
        Type::Array(item) => matches!(**item, Type::Ref(_)),
        _ => false,
    }
}

/// Returns the entities that have a capability of one of these kinds.
fn entities_with<'c>(catalog: &'c Catalog, kinds: &[Kind]) -> HashSet<&'c str> {
    let capabilities = catalog.capabilities.values().filter(|capability| kinds.contains(&capability.kind));
    capabilities.map(|capability| capability.entity.as_str()).collect()
}

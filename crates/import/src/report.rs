//! The report of an import: how many operations are mapped, which are not and why, and what is a guess.
//! Invariant: every operation is counted once: mapped, deprecated, left out on request, or not mapped with a reason.

use std::collections::HashSet;

use catalog::{Catalog, Kind, Type, Via};
use serde::Serialize;

/// An operation that the draft does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmapped {
    /// `GET /tickets/{number}`, or `query ticket`.
    pub operation: String,
    /// The reason, for a person.
    pub why: String,
}

/// An assumption of the importer that a person should check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// The entity, the operation or the part of the head (`origin`, `auth`) that it is about.
    pub at: String,
    /// The assumption, for a person.
    pub what: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportReport {
    /// The number of operations of the specification, deprecated ones included.
    pub operations: usize,
    pub deprecated: usize,
    /// The number of operations that `--only` and `--tag` left out.
    pub left_out: usize,
    /// The number of operations that at least one capability calls.
    pub mapped: usize,
    pub unmapped: Vec<Unmapped>,
    pub entities: usize,
    pub capabilities: usize,
    /// The number of relations that a query follows.
    pub relations: usize,
    /// The number of fields that refer to another entity.
    pub references: usize,
    /// Entities that cannot be listed.
    pub without_list: Vec<String>,
    /// Entities that cannot be read by their key.
    pub without_get: Vec<String>,
    pub guesses: Vec<Guess>,
}

impl ImportReport {
    /// Returns the mapped share of the operations that are neither deprecated nor left out; 0 where there are none.
    pub fn share(&self) -> f64 {
        self.mapped as f64 / (self.mapped + self.unmapped.len()).max(1) as f64
    }

    /// Counts what the catalog holds.
    pub(crate) fn count(&mut self, catalog: &Catalog) {
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

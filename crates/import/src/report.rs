//! What became of a specification: what is mapped, what is not and why, and what is a guess.
//! Invariant: every operation is counted once: mapped, deprecated, left out on request, or not mapped with a reason.

use std::collections::HashSet;

use catalog::{Catalog, Kind, Type, Via};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmapped {
    pub operation: String,
    pub why: String,
}

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    pub at: String,
    pub what: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// All of the specification, deprecated ones included.
    pub operations: usize,
    pub deprecated: usize,
    /// By `--only` and `--tag`.
    pub left_out: usize,
    pub mapped: usize,
    pub unmapped: Vec<Unmapped>,
    pub entities: usize,
    pub capabilities: usize,
    /// Relations, and fields that refer to another entity.
    pub relations: usize,
    pub references: usize,
    /// Entities that cannot be listed.
    pub without_list: Vec<String>,
    /// Entities that cannot be read by their key.
    pub without_get: Vec<String>,
    pub guesses: Vec<Guess>,
}

impl Report {
    /// Of the operations that are neither deprecated nor left out on request; nothing where there are none.
    pub fn share(&self) -> f64 {
        self.mapped as f64 / (self.mapped + self.unmapped.len()).max(1) as f64
    }

    pub(crate) fn count(&mut self, catalog: &Catalog) {
        self.entities = catalog.entities.len();
        self.capabilities = catalog.capabilities.len();
        for entity in catalog.entities.values() {
            let called = |relation: &&catalog::Relation| !matches!(relation.via, Via::Key { .. });
            self.relations += entity.relations.values().filter(called).count();
            let refers = |kind: &Type| match kind {
                Type::Ref(_) => true,
                Type::Array(of) => matches!(**of, Type::Ref(_)),
                _ => false,
            };
            self.references += entity.fields.values().filter(|field| refers(&field.kind)).count();
        }
        let of = |kinds: &[Kind]| -> HashSet<&str> {
            catalog.capabilities.values().filter(|c| kinds.contains(&c.kind)).map(|c| c.entity.as_str()).collect()
        };
        let (listed, got) = (of(&[Kind::Query, Kind::Search]), of(&[Kind::Get]));
        let without = |has: &HashSet<&str>| {
            catalog.entities.keys().filter(|name| !has.contains(name.as_str())).cloned().collect()
        };
        self.without_list = without(&listed);
        self.without_get = without(&got);
    }
}

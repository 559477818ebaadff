//! What a reload changed, for the operator's log.
//! Invariant: an unchanged folder reports nothing.

use std::fmt;
use std::sync::Arc;

use base::CatalogId;

use super::Registry;
use super::problem::Problem;
use crate::model::Catalog;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub changes: Vec<Change>,
    /// Problems that the registry before did not have.
    pub problems: Vec<Problem>,
    /// Files and folders that had a problem and have none any more.
    pub repaired: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Added {
        id: CatalogId,
        version: u32,
    },
    Replaced {
        id: CatalogId,
        from: u32,
        to: u32,
    },
    /// Sessions that pinned it go on.
    Withdrawn {
        id: CatalogId,
    },
    /// A file has the id of a shipped catalog, and is offered in its place.
    InsteadOfShipped {
        id: CatalogId,
        file: String,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Added { id, version } => write!(f, "`{id}` version {version} is offered"),
            Change::Replaced { id, from, to } => {
                write!(f, "`{id}` version {to} is offered to new sessions in place of version {from}")
            }
            Change::Withdrawn { id } => write!(f, "`{id}` is no longer offered; sessions that use it go on"),
            Change::InsteadOfShipped { id, file } => {
                write!(f, "`{id}` comes from {file}, not from the shipped catalog")
            }
        }
    }
}

impl Report {
    pub(super) fn between(before: &Registry, after: &Registry) -> Self {
        let changed = |new: &Arc<Catalog>| {
            let (id, version) = (new.id.clone(), new.version);
            match before.by_id.get(&id) {
                None => Some(Change::Added { id, version }),
                Some(old) if old.digest() != new.digest() => {
                    Some(Change::Replaced { id, from: old.version, to: version })
                }
                Some(_) => None,
            }
        };
        let gone = before.by_id.keys().filter(|id| !after.by_id.contains_key(*id));
        let withdrawn = gone.map(|id| Change::Withdrawn { id: id.clone() });
        let has = |problems: &[Problem], place: &str| problems.iter().any(|problem| problem.place == place);
        let repaired = before.problems.iter().filter(|old| !has(&after.problems, &old.place));
        Self {
            changes: after.by_id.values().filter_map(changed).chain(withdrawn).collect(),
            problems: after.problems.iter().filter(|new| !before.problems.contains(new)).cloned().collect(),
            repaired: repaired.map(|old| old.place.clone()).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.problems.is_empty() && self.repaired.is_empty()
    }
}

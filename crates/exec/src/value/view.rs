//! The rows of a step with the types of their columns, and how paths lead into them.
//! Invariant: a path leads through a reference only into an attached row, or to the key part that the reference
//! itself is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::CatalogId;
use catalog::{Catalog, Entity, Row, Type};
use lang::plan::{Column, EntityRef, Step};
use serde_json::Value;
use smol_str::SmolStr;

use crate::outcome::{Attached, Rowset};

/// The pinned catalogs of a session.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// The rows of a step, with what the plan knows about them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub rows: &'a Rowset,
    pub columns: &'a [Column],
    pub of: Option<&'a EntityRef>,
    pub catalogs: &'a Catalogs,
}

impl<'a> View<'a> {
    pub fn new(rows: &'a Rowset, step: &'a Step, catalogs: &'a Catalogs) -> Self {
        Self { rows, columns: &step.columns, of: step.of.as_ref(), catalogs }
    }

    /// Whether each row is a single value, which `_` stands for.
    pub fn is_literal(&self) -> bool {
        self.of.is_none() && matches!(self.columns, [only] if only.name == VALUE)
    }

    pub fn walk(&self, path: &'a [SmolStr]) -> Walk<'a> {
        let tables = self.rows.attached.iter().map(Arc::as_ref);
        let tables = tables.filter(|t| t.path.len() < path.len() && path.starts_with(&t.path)).collect();
        let key_at = (1..path.len()).find(|at| {
            let target = self.kind(&path[..*at]).and_then(|kind| self.entity_of(&kind));
            target.is_some_and(|entity| matches!(entity.key.as_slice(), [only] if *only == path[*at]))
        });
        Walk { path, tables, key_at, place: AtomicUsize::new(0) }
    }

    /// Returns the type at the end of a path. `None` if it is unknown.
    pub fn kind(&self, path: &[SmolStr]) -> Option<Type> {
        let (first, rest) = path.split_first()?;
        let mut kind = self.columns.iter().find(|c| c.name == *first)?.kind.clone();
        for name in rest {
            kind = match &kind {
                Type::Object(slots) => slots.get(name.as_str())?.kind.clone(),
                Type::Ref(_) => self.entity_of(&kind)?.fields.get(name.as_str())?.kind.clone(),
                _ => return None,
            };
        }
        Some(kind)
    }

    /// Returns the entity that a reference refers to: of the rows' own catalog, or else of the first catalog that has
    /// such an entity.
    pub fn entity_of(&self, kind: &Type) -> Option<&'a Entity> {
        let name = match kind {
            Type::Ref(name) => name,
            Type::Array(of) => return self.entity_of(of),
            _ => return None,
        };
        let own = self.of.and_then(|of| self.catalogs.get(&of.catalog)).and_then(|c| c.entity(name));
        own.or_else(|| self.catalogs.values().find_map(|c| c.entity(name)))
    }
}

/// The column of rows that are literals.
pub const VALUE: &str = "value";

/// A path, prepared for many rows: it knows which attached tables it passes through.
pub struct Walk<'a> {
    path: &'a [SmolStr],
    /// The attached rows that the path may pass through.
    tables: Vec<&'a Attached>,
    /// The depth at which the path names the only key part of the reference before it.
    key_at: Option<usize>,
    /// The position of the first column in the last row. Rows of one list have their columns in the same order.
    place: AtomicUsize,
}

impl<'a> Walk<'a> {
    /// Returns the value at the end of the path. `None` if it is absent or `null`.
    pub fn find<'r>(&self, row: &'r Row) -> Option<&'r Value>
    where
        'a: 'r,
    {
        let (first, rest) = self.path.split_first()?;
        let mut at = self.column(row, first)?;
        for (depth, name) in (1..).zip(rest) {
            at = match at {
                Value::Object(map) if map.contains_key(name.as_str()) => map.get(name.as_str())?,
                Value::Null => return None,
                reference => match self.tables.iter().find(|t| t.path.len() == depth) {
                    // A key part is the reference itself, so the row need not be attached.
                    _ if self.key_at == Some(depth) && !reference.is_object() => reference,
                    Some(table) => table.find(reference)?.get(name.as_str())?,
                    None => return None,
                },
            };
        }
        Some(at).filter(|value| !value.is_null())
    }

    /// Looks at the remembered position first, which costs less than hashing the name.
    fn column<'r>(&self, row: &'r Row, name: &str) -> Option<&'r Value> {
        if let Some((key, value)) = row.iter().nth(self.place.load(Ordering::Relaxed))
            && key == name
        {
            return Some(value);
        }
        let (place, (_, value)) = row.iter().enumerate().find(|(_, (key, _))| *key == name)?;
        self.place.store(place, Ordering::Relaxed);
        Some(value)
    }
}

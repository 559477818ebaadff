//! The rows of a step with what is known of their columns: how paths lead into them, and of what type they are there.
//! Invariant: a path leads through a reference only into what was attached there, or to the part of the key that it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::CatalogId;
use catalog::{Catalog, Entity, Row, Type};
use lang::plan::{Column, EntityRef, Step};
use serde_json::Value;
use smol_str::SmolStr;

use crate::outcome::{Attached, Rowset};

pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

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

    /// Whether each row is one value, which `_` means then.
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

    /// What the path leads to; `None` where nobody said.
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

    /// The entity that a reference refers to: of the rows' own catalog, or of the one catalog that has such an entity.
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

/// A path that knows where it leads through references.
pub struct Walk<'a> {
    path: &'a [SmolStr],
    tables: Vec<&'a Attached>,
    /// Where the name is the one part of the key that the reference before it is.
    key_at: Option<usize>,
    /// Where the first name was in the last row: rows of one list have their columns in one order.
    place: AtomicUsize,
}

impl<'a> Walk<'a> {
    /// The value; `None` where there is nothing, and where it is `null`.
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
                    // A part of the key needs no look at what it leads to.
                    _ if self.key_at == Some(depth) && !reference.is_object() => reference,
                    Some(table) => table.find(reference)?.get(name.as_str())?,
                    None => return None,
                },
            };
        }
        Some(at).filter(|value| !value.is_null())
    }

    /// A look at one place costs less than a hash of the name, and does not touch the map's index.
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

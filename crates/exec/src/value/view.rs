//! The typed view of a step's rows, and the lookup of paths in rows. A walk is a path that is prepared for many rows.
//! Invariant: a path passes through a reference only into an attached row, or to the key part that the reference itself
//! contains.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::CatalogId;
use catalog::{Catalog, Entity, Row, Type};
use lang::plan::{Column, EntityRef, Step};
use serde_json::Value;
use smol_str::SmolStr;

use crate::outcome::{Attached, Rowset};

/// The pinned catalogs of a session, by id.
pub type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// The rows of a step, with their columns and entity from the plan.
#[derive(Clone, Copy)]
pub struct RowsView<'a> {
    pub rows: &'a Rowset,
    pub columns: &'a [Column],
    /// The entity of the rows; `None` for rows that the program constructed.
    pub of: Option<&'a EntityRef>,
    pub catalogs: &'a Catalogs,
}

impl<'a> RowsView<'a> {
    pub fn new(rows: &'a Rowset, step: &'a Step, catalogs: &'a Catalogs) -> Self {
        Self { rows, columns: &step.columns, of: step.of.as_ref(), catalogs }
    }

    /// Returns whether the rows are literals: each row has only the column `value`, and `_` refers to that value.
    pub fn is_literal(&self) -> bool {
        self.of.is_none() && matches!(self.columns, [only] if only.name == LITERAL_COLUMN)
    }

    /// Prepares a path for lookups in many rows.
    pub fn walk(&self, path: &'a [SmolStr]) -> Walk<'a> {
        let passes_through =
            |attached: &&Attached| attached.path.len() < path.len() && path.starts_with(&attached.path);
        let key_depth = (1..path.len()).find(|depth| {
            let target = self.kind(&path[..*depth]).and_then(|kind| self.entity_of(&kind));
            target.is_some_and(|entity| matches!(entity.key.as_slice(), [only] if *only == path[*depth]))
        });
        Walk {
            path,
            attached: self.rows.attached.iter().map(Arc::as_ref).filter(passes_through).collect(),
            key_depth,
            column_position: AtomicUsize::new(0),
        }
    }

    /// Returns the type of the value at a path; `None` if it is unknown.
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

    /// Returns the entity of a reference type: from the rows' own catalog, or else from the first catalog with an entity of
    /// that name.
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

/// The name of the only column of literal rows.
pub const LITERAL_COLUMN: &str = "value";

/// A path that is prepared for lookups in many rows.
pub struct Walk<'a> {
    path: &'a [SmolStr],
    /// The attached rows through which the path may pass.
    attached: Vec<&'a Attached>,
    /// The index of the path element that names the only key part of a reference. At this element the value is the reference
    /// itself.
    key_depth: Option<usize>,
    /// The position of the path's first column in the last row. Rows of one list usually have the same column order, so the
    /// position is tried first. A wrong position is harmless, because the name is compared.
    column_position: AtomicUsize,
}

impl<'a> Walk<'a> {
    /// Returns the value at the path in a row; `None` if it is absent or `null`.
    pub fn find<'r>(&self, row: &'r Row) -> Option<&'r Value>
    where
        'a: 'r,
    {
        let (first, rest) = self.path.split_first()?;
        let mut value = self.column(row, first)?;
        for (depth, name) in (1..).zip(rest) {
            value = match value {
                Value::Object(map) if map.contains_key(name.as_str()) => map.get(name.as_str())?,
                Value::Null => return None,
                reference => match self.attached.iter().find(|attached| attached.path.len() == depth) {
                    // A scalar reference is its own key part, so no attached row is necessary.
                    _ if self.key_depth == Some(depth) && !reference.is_object() => reference,
                    Some(attached) => attached.find(reference)?.get(name.as_str())?,
                    None => return None,
                },
            };
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// Returns the value of a column. The remembered position is tried first, because that is cheaper than hashing the name.
    fn column<'r>(&self, row: &'r Row, name: &str) -> Option<&'r Value> {
        if let Some((key, value)) = row.iter().nth(self.column_position.load(Ordering::Relaxed))
            && key == name
        {
            return Some(value);
        }
        let (position, (_, value)) = row.iter().enumerate().find(|(_, (key, _))| *key == name)?;
        self.column_position.store(position, Ordering::Relaxed);
        Some(value)
    }
}

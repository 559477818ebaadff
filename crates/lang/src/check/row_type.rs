//! What the rows of a node are: of which entity, with which columns, one or many.
//! Invariant: a column's type is known, except where the rows are those of an earlier run (`open`).

use std::sync::Arc;

use catalog::{Capability, Catalog, Type};
use smol_str::SmolStr;

use crate::ir::{Column, EntityRef, Path};

#[derive(Debug, Clone)]
pub struct RowType {
    /// Rows that a program made are of nothing.
    pub entity: Option<RowEntity>,
    /// In order; shared, because most nodes keep those of their input, and a plan holds them as they are.
    pub columns: Arc<Vec<Column>>,
    pub(super) ref_catalogs: RefCatalogs,
    pub many: bool,
    /// Literals: a row is the value of its one column.
    pub is_literal: bool,
    /// Rows of an earlier run: their columns are known when it is read.
    pub has_unknown_columns: bool,
    /// Fields of the entity that are no columns can be read by its get.
    pub has_unread_fields: bool,
    /// References whose entity stands beside them.
    pub attached: Vec<Path>,
}

#[derive(Debug, Clone)]
pub struct RowEntity {
    pub catalog: Arc<Catalog>,
    pub entity: SmolStr,
}

/// The catalogs whose entities the references of columns are of.
#[derive(Debug, Clone)]
pub(super) enum RefCatalogs {
    /// The same for every column: rows of an entity.
    Same(Arc<Catalog>),
    /// Column by column: rows that a program made.
    PerColumn(Arc<[Option<Arc<Catalog>>]>),
    None,
}

/// One column, by itself.
#[derive(Debug, Clone)]
pub struct TypedColumn {
    /// A wire name; `owner.name` where it came through a reference.
    pub name: SmolStr,
    pub kind: Type,
    /// The catalog whose entities its references are of.
    pub ref_catalog: Option<Arc<Catalog>>,
}

impl RowType {
    /// Of whole rows, what a capability answers.
    pub fn limited_to_capability(mut self, catalog: &Catalog, capability: &Capability) -> Self {
        if let Some(gives) = &capability.gives {
            let own = catalog.get_of(&capability.returns);
            // What its own get does not carry, nothing carries.
            self.has_unread_fields = own.is_some_and(|get| get.name != capability.name);
            self.columns =
                Arc::new(self.columns.iter().filter(|c| gives.iter().any(|name| *name == c.name)).cloned().collect());
        }
        self
    }

    /// Whole rows of an entity.
    pub fn entity_rows(catalog: &Arc<Catalog>, entity: &str, many: bool) -> Self {
        let fields = catalog.entity(entity).into_iter().flat_map(|e| e.fields.values());
        let column = |f: &catalog::Field| Column { name: SmolStr::new(&f.name), kind: f.kind.clone() };
        let entity = Some(RowEntity { catalog: catalog.clone(), entity: entity.into() });
        let columns = Arc::new(fields.map(column).collect());
        RowType {
            entity,
            columns,
            ref_catalogs: RefCatalogs::Same(catalog.clone()),
            ..RowType::computed(Vec::new(), many)
        }
    }

    /// Rows that the program made.
    pub fn computed(columns: Vec<TypedColumn>, many: bool) -> Self {
        let has_no_references = columns.iter().all(|c| c.ref_catalog.is_none());
        let ref_catalogs = if has_no_references {
            RefCatalogs::None
        } else {
            RefCatalogs::PerColumn(columns.iter().map(|c| c.ref_catalog.clone()).collect())
        };
        RowType {
            entity: None,
            columns: Arc::new(columns.into_iter().map(|c| Column { name: c.name, kind: c.kind }).collect()),
            ref_catalogs,
            many,
            is_literal: false,
            has_unknown_columns: false,
            has_unread_fields: false,
            attached: Vec::new(),
        }
    }

    /// One row `{content}`.
    pub fn text() -> Self {
        let kind = Type::String(catalog::TextStyle::Document);
        RowType::computed(vec![TypedColumn { name: "content".into(), kind, ref_catalog: None }], false)
    }

    pub fn single_row(self) -> Self {
        RowType { many: false, ..self }
    }

    pub fn entity_of(&self) -> Option<EntityRef> {
        self.entity.as_ref().map(|of| EntityRef { catalog: of.catalog.id.clone(), entity: of.entity.clone() })
    }

    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.entity.as_ref().map(|of| &of.catalog)
    }

    /// The column at a place, with the catalog whose entities its references are of.
    pub fn column_at(&self, index: usize) -> Option<TypedColumn> {
        let column = self.columns.get(index)?;
        let ref_catalog = match &self.ref_catalogs {
            RefCatalogs::Same(ref_catalog) => Some(ref_catalog.clone()),
            RefCatalogs::PerColumn(ref_catalogs) => ref_catalogs.get(index).cloned().flatten(),
            RefCatalogs::None => None,
        };
        Some(TypedColumn { name: column.name.clone(), kind: column.kind.clone(), ref_catalog })
    }

    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c.name == name)
    }

    /// The column of this name, in whatever case when only one is like it; or a field that the get brings.
    pub fn column(&self, name: &str) -> Option<TypedColumn> {
        let mut alike = (0..).zip(self.columns.iter()).filter(|(_, c)| c.name.eq_ignore_ascii_case(name));
        let exact = self.columns.iter().position(|c| c.name == name);
        let found = exact.or_else(|| match (alike.next(), alike.next()) {
            (Some((only, _)), None) => Some(only),
            _ => None,
        });
        if let Some(found) = found {
            return self.column_at(found);
        }
        let of = self.entity.as_ref().filter(|_| self.has_unread_fields)?;
        let fields = &of.catalog.entity(&of.entity)?.fields;
        let field = fields.get(name).or_else(|| fields.values().find(|f| f.name.eq_ignore_ascii_case(name)))?;
        Some(TypedColumn {
            name: SmolStr::new(&field.name),
            kind: field.kind.clone(),
            ref_catalog: Some(of.catalog.clone()),
        })
    }

    /// What may be named, for alternatives.
    pub fn nameable_columns(&self) -> Vec<String> {
        let mut names: Vec<String> = self.columns.iter().map(|c| c.name.to_string()).collect();
        if let Some(of) = self.entity.as_ref().filter(|_| self.has_unread_fields) {
            let more = of.catalog.entity(&of.entity).into_iter().flat_map(|e| e.fields.keys());
            names.extend(more.filter(|f| !self.has_column(f)).cloned());
        }
        names
    }
}

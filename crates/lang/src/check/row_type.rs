//! The type of a node's rows: their entity, their columns, and whether there may be several rows.
//! Invariant: the types of all columns are known, except in rows of an earlier run (`has_unknown_columns`).

use std::sync::Arc;

use catalog::{Capability, Catalog, Type};
use smol_str::SmolStr;

use crate::ir::{Column, EntityRef, Path};

/// The type of the rows that a node returns.
#[derive(Debug, Clone)]
pub struct RowType {
    /// The entity that the rows belong to. Rows that the program computed have none.
    pub entity: Option<RowEntity>,
    /// The columns in order. The list is shared, because most nodes have the columns of their input and the plan uses
    /// the list unchanged.
    pub columns: Arc<Vec<Column>>,
    /// The catalogs of the entities that the columns may refer to.
    pub(super) ref_catalogs: RefCatalogs,
    /// Whether there may be several rows.
    pub many: bool,
    /// Whether each row is a literal, so that the row equals the value of its only column.
    pub is_literal: bool,
    /// Whether the rows come from an earlier run, so that their columns are known only at run time.
    pub has_unknown_columns: bool,
    /// Whether the entity has fields that are not columns yet but that its get operation can read.
    pub has_unread_fields: bool,
    /// The paths of the references whose rows are attached.
    pub attached: Vec<Path>,
}

/// The entity of rows, with the catalog that declares it.
#[derive(Debug, Clone)]
pub struct RowEntity {
    pub catalog: Arc<Catalog>,
    pub entity: SmolStr,
}

impl RowEntity {
    /// Returns the entity by the ids that a plan uses.
    pub fn entity_ref(&self) -> EntityRef {
        EntityRef { catalog: self.catalog.id.clone(), entity: self.entity.clone() }
    }
}

/// The catalogs of the entities that the columns of rows may refer to.
#[derive(Debug, Clone)]
pub(super) enum RefCatalogs {
    /// All columns refer to one catalog, because the rows belong to an entity.
    Same(Arc<Catalog>),
    /// Each column has its own catalog, because the program computed the rows.
    PerColumn(Arc<[Option<Arc<Catalog>>]>),
    /// No column contains references.
    None,
}

/// A column, with the catalog that its references refer to.
#[derive(Debug, Clone)]
pub struct TypedColumn {
    /// The API's name of the field, or `owner.name` for a field of an attached row.
    pub name: SmolStr,
    pub kind: Type,
    /// The catalog of the entities that the column may refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
}

impl RowType {
    /// Limits rows of an entity to the columns that a capability returns.
    pub fn limited_to_capability(mut self, catalog: &Catalog, capability: &Capability) -> Self {
        if let Some(gives) = &capability.gives {
            let get_of_entity = catalog.get_of(&capability.returns);
            // The get operation can read the missing fields later, unless the capability is the get operation itself.
            self.has_unread_fields = get_of_entity.is_some_and(|get| get.name != capability.name);
            self.columns =
                Arc::new(self.columns.iter().filter(|c| gives.iter().any(|name| *name == c.name)).cloned().collect());
        }
        self
    }

    /// Returns the type of complete rows of an entity.
    pub fn rows_of_entity(catalog: &Arc<Catalog>, entity: &str, many: bool) -> Self {
        let fields = catalog.entity(entity).into_iter().flat_map(|e| e.fields.values());
        let column = |f: &catalog::Field| Column { name: SmolStr::new(&f.name), kind: f.kind.clone() };
        let entity = Some(RowEntity { catalog: catalog.clone(), entity: entity.into() });
        let columns = Arc::new(fields.map(column).collect());
        RowType {
            entity,
            columns,
            ref_catalogs: RefCatalogs::Same(catalog.clone()),
            ..RowType::computed_rows(Vec::new(), many)
        }
    }

    /// Returns the type of rows that the program computed.
    pub fn computed_rows(columns: Vec<TypedColumn>, many: bool) -> Self {
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

    /// Returns the type of a text, which is one row `{content}`.
    pub fn text_rows() -> Self {
        let kind = Type::String(catalog::TextStyle::Document);
        RowType::computed_rows(vec![TypedColumn { name: "content".into(), kind, ref_catalog: None }], false)
    }

    /// Returns the type of a single one of the rows.
    pub fn single_row(self) -> Self {
        RowType { many: false, ..self }
    }

    /// Returns the entity of the rows by the ids that a plan uses.
    pub fn entity_ref(&self) -> Option<EntityRef> {
        self.entity.as_ref().map(RowEntity::entity_ref)
    }

    /// Returns the catalog of the entity that the rows belong to.
    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.entity.as_ref().map(|of| &of.catalog)
    }

    /// Returns the column at an index.
    pub fn column_at(&self, index: usize) -> Option<TypedColumn> {
        let column = self.columns.get(index)?;
        let ref_catalog = match &self.ref_catalogs {
            RefCatalogs::Same(ref_catalog) => Some(ref_catalog.clone()),
            RefCatalogs::PerColumn(ref_catalogs) => ref_catalogs.get(index).cloned().flatten(),
            RefCatalogs::None => None,
        };
        Some(TypedColumn { name: column.name.clone(), kind: column.kind.clone(), ref_catalog })
    }

    /// Returns whether a column has exactly this name.
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c.name == name)
    }

    /// Returns the column of this name, or a field of this name that the get operation can read. The case of the name
    /// is ignored if only one column matches.
    pub fn column(&self, name: &str) -> Option<TypedColumn> {
        let mut columns_in_any_case = (0..).zip(self.columns.iter()).filter(|(_, c)| c.name.eq_ignore_ascii_case(name));
        let exact = self.columns.iter().position(|c| c.name == name);
        let index_of_name = exact.or_else(|| match (columns_in_any_case.next(), columns_in_any_case.next()) {
            (Some((only, _)), None) => Some(only),
            _ => None,
        });
        if let Some(index_of_name) = index_of_name {
            return self.column_at(index_of_name);
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

    /// Lists the names that a path may begin with. Corrections choose from them.
    pub fn nameable_columns(&self) -> Vec<String> {
        let mut names: Vec<String> = self.columns.iter().map(|c| c.name.to_string()).collect();
        if let Some(of) = self.entity.as_ref().filter(|_| self.has_unread_fields) {
            let unread_fields = of.catalog.entity(&of.entity).into_iter().flat_map(|e| e.fields.keys());
            names.extend(unread_fields.filter(|f| !self.has_column(f)).cloned());
        }
        names
    }
}

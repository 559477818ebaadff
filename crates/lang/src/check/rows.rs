//! What the rows of a node are: of which entity, with which columns, one or many.
//! Invariant: a column's type is known, except where the rows are those of an earlier run (`open`).

use std::sync::Arc;

use catalog::{Capability, Catalog, Type};

use crate::ir::EntityOf;

#[derive(Debug, Clone)]
pub struct RowType {
    /// Rows that a program made are of nothing.
    pub of: Option<Of>,
    /// In order; shared, because most nodes keep those of their input.
    pub columns: Arc<Vec<Col>>,
    pub many: bool,
    /// Literals: a row is the value of its one column.
    pub literal: bool,
    /// Rows of an earlier run: their columns are known when it is read.
    pub open: bool,
    /// Fields of the entity that are no columns can be read by its get.
    pub beyond: bool,
    /// References whose entity stands beside them.
    pub attached: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
pub struct Of {
    pub catalog: Arc<Catalog>,
    pub entity: String,
}

#[derive(Debug, Clone)]
pub struct Col {
    /// A wire name; `owner.name` where it came through a reference.
    pub name: String,
    pub kind: Type,
    /// The catalog whose entities its references are of.
    pub home: Option<Arc<Catalog>>,
}

impl RowType {
    /// Rows of an entity as a capability answers them.
    pub fn answered(catalog: &Arc<Catalog>, capability: &Capability, many: bool) -> Self {
        if !capability.gives_rows() {
            return RowType::made(Vec::new(), many);
        }
        let mut rows = RowType::of(catalog, &capability.returns, many);
        if let Some(gives) = &capability.gives {
            let own = catalog.get_of(&capability.returns);
            // What its own get does not carry, nothing carries.
            rows.beyond = own.is_some_and(|get| get.name != capability.name);
            rows.columns = Arc::new(rows.columns.iter().filter(|c| gives.contains(&c.name)).cloned().collect());
        }
        rows
    }

    /// Whole rows of an entity.
    pub fn of(catalog: &Arc<Catalog>, entity: &str, many: bool) -> Self {
        let fields = catalog.entity(entity).into_iter().flat_map(|e| e.fields.values());
        let column =
            |f: &catalog::Field| Col { name: f.name.clone(), kind: f.kind.clone(), home: Some(catalog.clone()) };
        let of = Some(Of { catalog: catalog.clone(), entity: entity.to_owned() });
        RowType { of, ..RowType::made(fields.map(column).collect(), many) }
    }

    /// Rows that the program made.
    pub fn made(columns: Vec<Col>, many: bool) -> Self {
        RowType {
            of: None,
            columns: Arc::new(columns),
            many,
            literal: false,
            open: false,
            beyond: false,
            attached: Vec::new(),
        }
    }

    /// One row `{content}`.
    pub fn text() -> Self {
        let kind = Type::String(catalog::TextStyle::Document);
        RowType::made(vec![Col { name: "content".to_owned(), kind, home: None }], false)
    }

    pub fn one(self) -> Self {
        RowType { many: false, ..self }
    }

    pub fn entity_of(&self) -> Option<EntityOf> {
        self.of.as_ref().map(|of| EntityOf { catalog: of.catalog.id.clone(), entity: of.entity.clone() })
    }

    pub fn home(&self) -> Option<&Arc<Catalog>> {
        self.of.as_ref().map(|of| &of.catalog)
    }

    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c.name == name)
    }

    /// The column of this name, in whatever case when only one is like it; or a field that the get brings.
    pub fn column(&self, name: &str) -> Option<Col> {
        let mut alike = self.columns.iter().filter(|c| c.name.eq_ignore_ascii_case(name));
        let exact = self.columns.iter().find(|c| c.name == name).or_else(|| match (alike.next(), alike.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        });
        if let Some(found) = exact {
            return Some(found.clone());
        }
        let of = self.of.as_ref().filter(|_| self.beyond)?;
        let fields = &of.catalog.entity(&of.entity)?.fields;
        let field = fields.get(name).or_else(|| fields.values().find(|f| f.name.eq_ignore_ascii_case(name)))?;
        Some(Col { name: field.name.clone(), kind: field.kind.clone(), home: Some(of.catalog.clone()) })
    }

    /// What may be named, for alternatives.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        if let Some(of) = self.of.as_ref().filter(|_| self.beyond) {
            let more = of.catalog.entity(&of.entity).into_iter().flat_map(|e| e.fields.keys());
            names.extend(more.filter(|f| !self.has(f)).cloned());
        }
        names
    }
}

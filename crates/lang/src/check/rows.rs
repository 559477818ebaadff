//! What the rows of a node are: of which entity, with which columns, one or many.
//! Invariant: a column's type is known, except where the rows are those of an earlier run (`open`).

use std::sync::Arc;

use catalog::{Capability, Catalog, Type};
use smol_str::SmolStr;

use crate::ir::{Column, EntityOf, Path};

#[derive(Debug, Clone)]
pub struct RowType {
    /// Rows that a program made are of nothing.
    pub of: Option<Of>,
    /// In order; shared, because most nodes keep those of their input, and a plan holds them as they are.
    pub columns: Arc<Vec<Column>>,
    pub(super) homes: Homes,
    pub many: bool,
    /// Literals: a row is the value of its one column.
    pub literal: bool,
    /// Rows of an earlier run: their columns are known when it is read.
    pub open: bool,
    /// Fields of the entity that are no columns can be read by its get.
    pub beyond: bool,
    /// References whose entity stands beside them.
    pub attached: Vec<Path>,
}

#[derive(Debug, Clone)]
pub struct Of {
    pub catalog: Arc<Catalog>,
    pub entity: SmolStr,
}

/// The catalogs whose entities the references of columns are of.
#[derive(Debug, Clone)]
pub(super) enum Homes {
    /// The same for every column: rows of an entity.
    Same(Arc<Catalog>),
    /// Column by column: rows that a program made.
    Each(Arc<[Option<Arc<Catalog>>]>),
    Nowhere,
}

/// One column, by itself.
#[derive(Debug, Clone)]
pub struct Col {
    /// A wire name; `owner.name` where it came through a reference.
    pub name: SmolStr,
    pub kind: Type,
    /// The catalog whose entities its references are of.
    pub home: Option<Arc<Catalog>>,
}

impl RowType {
    /// Of whole rows, what a capability answers.
    pub fn given_by(mut self, catalog: &Catalog, capability: &Capability) -> Self {
        let rows = &mut self;
        if let Some(gives) = &capability.gives {
            let own = catalog.get_of(&capability.returns);
            // What its own get does not carry, nothing carries.
            rows.beyond = own.is_some_and(|get| get.name != capability.name);
            rows.columns =
                Arc::new(rows.columns.iter().filter(|c| gives.iter().any(|name| *name == c.name)).cloned().collect());
        }
        self
    }

    /// Whole rows of an entity.
    pub fn of(catalog: &Arc<Catalog>, entity: &str, many: bool) -> Self {
        let fields = catalog.entity(entity).into_iter().flat_map(|e| e.fields.values());
        let column = |f: &catalog::Field| Column { name: SmolStr::new(&f.name), kind: f.kind.clone() };
        let of = Some(Of { catalog: catalog.clone(), entity: entity.into() });
        let columns = Arc::new(fields.map(column).collect());
        RowType { of, columns, homes: Homes::Same(catalog.clone()), ..RowType::made(Vec::new(), many) }
    }

    /// Rows that the program made.
    pub fn made(made: Vec<Col>, many: bool) -> Self {
        let homeless = made.iter().all(|c| c.home.is_none());
        let homes = if homeless { Homes::Nowhere } else { Homes::Each(made.iter().map(|c| c.home.clone()).collect()) };
        RowType {
            of: None,
            columns: Arc::new(made.into_iter().map(|c| Column { name: c.name, kind: c.kind }).collect()),
            homes,
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
        RowType::made(vec![Col { name: "content".into(), kind, home: None }], false)
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

    /// The column at a place, with the catalog whose entities its references are of.
    pub fn at(&self, place: usize) -> Option<Col> {
        let column = self.columns.get(place)?;
        let home = match &self.homes {
            Homes::Same(home) => Some(home.clone()),
            Homes::Each(homes) => homes.get(place).cloned().flatten(),
            Homes::Nowhere => None,
        };
        Some(Col { name: column.name.clone(), kind: column.kind.clone(), home })
    }

    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c.name == name)
    }

    /// The column of this name, in whatever case when only one is like it; or a field that the get brings.
    pub fn column(&self, name: &str) -> Option<Col> {
        let mut alike = (0..).zip(self.columns.iter()).filter(|(_, c)| c.name.eq_ignore_ascii_case(name));
        let exact = self.columns.iter().position(|c| c.name == name);
        let found = exact.or_else(|| match (alike.next(), alike.next()) {
            (Some((only, _)), None) => Some(only),
            _ => None,
        });
        if let Some(found) = found {
            return self.at(found);
        }
        let of = self.of.as_ref().filter(|_| self.beyond)?;
        let fields = &of.catalog.entity(&of.entity)?.fields;
        let field = fields.get(name).or_else(|| fields.values().find(|f| f.name.eq_ignore_ascii_case(name)))?;
        Some(Col { name: SmolStr::new(&field.name), kind: field.kind.clone(), home: Some(of.catalog.clone()) })
    }

    /// What may be named, for alternatives.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.columns.iter().map(|c| c.name.to_string()).collect();
        if let Some(of) = self.of.as_ref().filter(|_| self.beyond) {
            let more = of.catalog.entity(&of.entity).into_iter().flat_map(|e| e.fields.keys());
            names.extend(more.filter(|f| !self.has(f)).cloned());
        }
        names
    }
}

//! The store's schema, read from its own text.
//! Invariants: the text parses and every name in it is defined (a test holds both); types keep the order of the text.

use std::sync::LazyLock;

use super::language::ast::{FieldDef, Kind, OperationKind, TypeDef};
use super::language::definitions;

pub const TEXT: &str = include_str!("schema.graphql");

/// The types that every schema has: scalars, introspection, and the fields that need no definition.
const BUILT_IN: &str = include_str!("introspection.graphql");

/// Holds `__typename`, `__schema` and `__type`; no one can ask for it by name.
const META: &str = "__Meta";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let texts = [TEXT, BUILT_IN];
    Schema { types: texts.into_iter().flat_map(|text| definitions(text).unwrap_or_default()).collect() }
});

pub struct Schema {
    types: Vec<TypeDef>,
}

impl Schema {
    pub fn shipped() -> &'static Schema {
        &SCHEMA
    }

    /// All that introspection shows.
    pub fn types(&self) -> impl Iterator<Item = &TypeDef> {
        self.types.iter().filter(|one| one.name != META)
    }

    pub fn of(&self, name: &str) -> Option<&TypeDef> {
        self.types().find(|one| one.name == name)
    }

    /// A field that may be asked for on a type, the ones that need no definition included.
    pub fn field(&self, on: &str, name: &str) -> Option<&FieldDef> {
        let owner = match name {
            "__typename" => META,
            "__schema" | "__type" if on == root(OperationKind::Query) => META,
            _ => on,
        };
        let found = self.types.iter().find(|one| one.name == owner)?;
        found.fields().iter().find(|field| field.name == name)
    }

    /// The objects that a value of this type can be; itself for an object.
    pub fn possible(&self, name: &str) -> Vec<&str> {
        match self.of(name).map(|one| &one.kind) {
            Some(Kind::Union(members)) => members.iter().map(String::as_str).collect(),
            Some(Kind::Interface { .. }) => self.implementing(name).collect(),
            Some(Kind::Object { .. }) => self.of(name).map(|one| one.name.as_str()).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn implementing<'s>(&'s self, interface: &str) -> impl Iterator<Item = &'s str> {
        self.types().filter_map(move |one| match &one.kind {
            Kind::Object { interfaces, .. } if interfaces.iter().any(|name| name == interface) => {
                Some(one.name.as_str())
            }
            _ => None,
        })
    }

    /// Whether values of the type have fields to choose from.
    pub fn is_composite(&self, name: &str) -> bool {
        !self.possible(name).is_empty()
    }

    pub fn is_input(&self, name: &str) -> bool {
        self.of(name).is_some_and(|one| matches!(one.kind, Kind::Scalar | Kind::Enum(_) | Kind::Input(_)))
    }
}

impl TypeDef {
    pub fn fields(&self) -> &[FieldDef] {
        match &self.kind {
            Kind::Object { fields, .. } | Kind::Interface { fields } => fields,
            _ => &[],
        }
    }
}

/// The type that an operation starts on.
pub fn root(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Query => "Query",
        OperationKind::Mutation => "Mutation",
        OperationKind::Subscription => "Subscription",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_defined() {
        for text in [TEXT, BUILT_IN] {
            definitions(text).unwrap();
        }
        let schema = Schema::shipped();
        for one in &schema.types {
            for field in one.fields() {
                assert!(schema.of(field.of.name()).is_some(), "{}.{}", one.name, field.name);
                assert!(field.arguments.iter().all(|argument| schema.is_input(argument.of.name())));
            }
            match &one.kind {
                Kind::Union(members) => assert!(members.iter().all(|name| schema.of(name).is_some())),
                Kind::Object { interfaces, .. } => assert!(interfaces.iter().all(|name| schema.of(name).is_some())),
                Kind::Input(fields) => assert!(fields.iter().all(|field| schema.is_input(field.of.name()))),
                _ => {}
            }
        }
        assert_eq!(schema.possible("Node"), ["Product", "Person", "Order"]);
    }
}

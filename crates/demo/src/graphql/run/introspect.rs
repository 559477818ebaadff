//! The schema, asked about itself.
//! Invariant: everything shown comes from the definitions that operations are checked against.

use serde_json::{Value, json};

use super::resolve::Ask;
use crate::graphql::language::ast::{FieldDef, InputDef, Kind, OperationKind, TypeDef, TypeRef};
use crate::graphql::schema::{self, Schema};

/// `__schema` and `__type`.
pub fn root(ask: &Ask<'_>) -> Value {
    match ask.name {
        "__schema" => json!({}),
        _ => ask.argument("name").and_then(|name| ask.schema.of(name)).map(shown).into(),
    }
}

/// A field of one of the types that begin with `__`.
pub fn field(ask: &Ask<'_>) -> Value {
    let schema = ask.schema;
    let of_type = || ask.parent["name"].as_str().and_then(|name| schema.of(name));
    let with_deprecated = ask.arguments.get("includeDeprecated") == Some(&Value::Bool(true));
    match (ask.on, ask.name) {
        ("__Schema", "types") => schema.types().map(shown).collect(),
        ("__Schema", "queryType") => schema.of(schema::root(OperationKind::Query)).map(shown).into(),
        ("__Schema", "mutationType") => schema.of(schema::root(OperationKind::Mutation)).map(shown).into(),
        ("__Schema", "directives") => directives(schema),
        ("__Type", "fields") => of_type().and_then(|one| fields(schema, one, with_deprecated)).into(),
        ("__Type", "interfaces") => of_type().and_then(|one| interfaces(schema, one)).into(),
        ("__Type", "possibleTypes") => of_type().and_then(|one| possible(schema, one)).into(),
        ("__Type", "enumValues") => of_type().and_then(values).into(),
        ("__Type", "inputFields") => of_type().and_then(|one| input_fields(schema, one)).into(),
        _ => ask.parent.get(ask.name).cloned().unwrap_or_default(),
    }
}

fn shown(one: &TypeDef) -> Value {
    let kind = match one.kind {
        Kind::Scalar => "SCALAR",
        Kind::Enum(_) => "ENUM",
        Kind::Object { .. } => "OBJECT",
        Kind::Interface { .. } => "INTERFACE",
        Kind::Union(_) => "UNION",
        Kind::Input(_) => "INPUT_OBJECT",
    };
    json!({"kind": kind, "name": one.name, "description": one.about})
}

fn reference(schema: &Schema, of: &TypeRef) -> Value {
    match of {
        TypeRef::Named(name) => schema.of(name).map(shown).into(),
        TypeRef::List(inner) => json!({"kind": "LIST", "ofType": reference(schema, inner)}),
        TypeRef::NonNull(inner) => json!({"kind": "NON_NULL", "ofType": reference(schema, inner)}),
    }
}

fn fields(schema: &Schema, one: &TypeDef, with_deprecated: bool) -> Option<Value> {
    let wanted = |field: &&FieldDef| with_deprecated || field.deprecated.is_none();
    let shown = |field: &FieldDef| {
        json!({
            "name": field.name,
            "description": field.about,
            "args": inputs(schema, &field.arguments),
            "type": reference(schema, &field.of),
            "isDeprecated": field.deprecated.is_some(),
            "deprecationReason": field.deprecated,
        })
    };
    let has_fields = matches!(one.kind, Kind::Object { .. } | Kind::Interface { .. });
    has_fields.then(|| one.fields().iter().filter(wanted).map(shown).collect())
}

fn inputs(schema: &Schema, inputs: &[InputDef]) -> Value {
    let shown = |input: &InputDef| {
        json!({
            "name": input.name,
            "description": input.about,
            "type": reference(schema, &input.of),
            "defaultValue": input.default.as_ref().map(ToString::to_string),
            "isDeprecated": false,
        })
    };
    inputs.iter().map(shown).collect()
}

fn input_fields(schema: &Schema, one: &TypeDef) -> Option<Value> {
    match &one.kind {
        Kind::Input(fields) => Some(inputs(schema, fields)),
        _ => None,
    }
}

fn interfaces(schema: &Schema, one: &TypeDef) -> Option<Value> {
    match &one.kind {
        Kind::Object { interfaces, .. } => {
            Some(interfaces.iter().filter_map(|name| schema.of(name)).map(shown).collect())
        }
        Kind::Interface { .. } => Some(json!([])),
        _ => None,
    }
}

fn possible(schema: &Schema, one: &TypeDef) -> Option<Value> {
    let is_abstract = matches!(one.kind, Kind::Interface { .. } | Kind::Union(_));
    is_abstract.then(|| schema.possible(&one.name).into_iter().filter_map(|name| schema.of(name)).map(shown).collect())
}

fn values(one: &TypeDef) -> Option<Value> {
    match &one.kind {
        Kind::Enum(values) => {
            let shown = values
                .iter()
                .map(|value| json!({"name": value.name, "description": value.about, "isDeprecated": false}));
            Some(shown.collect())
        }
        _ => None,
    }
}

fn directives(schema: &Schema) -> Value {
    let condition = TypeRef::NonNull(Box::new(TypeRef::Named("Boolean".to_owned())));
    let one = |name: &str, about: &str| {
        json!({
            "name": name,
            "description": about,
            "locations": ["FIELD", "FRAGMENT_SPREAD", "INLINE_FRAGMENT"],
            "args": [{"name": "if", "type": reference(schema, &condition), "isDeprecated": false}],
            "isRepeatable": false,
        })
    };
    json!([one("include", "Only if the argument is true."), one("skip", "Only if the argument is false.")])
}

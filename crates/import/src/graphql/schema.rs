//! A GraphQL schema as data, parsed from SDL or from the answer to an introspection query.
//! Invariant: both sources produce the same model. A text that is not a schema is an error with the reason.

use apollo_parser::Parser;
use apollo_parser::cst::{self, CstNode};
use indexmap::IndexMap;
use serde_json::Value;

use crate::ImportError;

/// The type of a field or an argument, such as `[ID!]!`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeRef {
    pub name: String,
    pub is_list: bool,
    pub required: bool,
    /// The type as the schema writes it: `[ID!]!`.
    pub text: String,
}

/// An argument of a field, or a field of an input type.
#[derive(Debug, Clone)]
pub struct Arg {
    pub name: String,
    pub ty: TypeRef,
    pub has_default: bool,
    pub description: String,
}

impl Arg {
    pub fn is_required(&self) -> bool {
        self.ty.required && !self.has_default
    }
}

/// A field of an object, an interface or an input type.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub args: Vec<Arg>,
    pub ty: TypeRef,
    pub description: String,
    pub deprecated: bool,
}

impl Field {
    /// Returns the field of an input type as if it were an argument. This flattens mutations with one `input` argument.
    pub fn to_input(&self) -> Arg {
        let Self { name, ty, description, .. } = self.clone();
        Arg { name, ty, has_default: false, description }
    }
}

/// The kind of a GraphQL type definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    Object,
    Interface,
    Union,
    Input,
    Enum,
    Scalar,
}

/// The definition of a GraphQL type.
#[derive(Debug, Clone)]
pub struct TypeDef {
    pub name: String,
    pub kind: TypeKind,
    pub description: String,
    pub fields: IndexMap<String, Field>,
    /// The interfaces of an object.
    pub implements: Vec<String>,
    /// The values of an enum.
    pub values: Vec<String>,
}

impl TypeDef {
    /// Returns whether the type implements Relay's interface `Node`, so that the query `node` can read its rows.
    pub fn is_node(&self) -> bool {
        self.implements.iter().any(|interface| interface == "Node")
    }
}

/// The types of a schema and its root types.
#[derive(Debug, Default)]
pub struct Schema {
    /// Type definitions by name.
    pub types: IndexMap<String, TypeDef>,
    /// The name of the query type.
    pub query: String,
    /// The name of the mutation type; empty if the schema has none.
    pub mutation: String,
}

impl Schema {
    pub fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ImportError::NotText)?;
        if text.trim_start().starts_with('{') && !text.trim_start().starts_with("{ ") || looks_like_json(text) {
            let value: Value = serde_json::from_str(text).map_err(|error| ImportError::NotJson(error.to_string()))?;
            return from_introspection(&value);
        }
        from_sdl(text)
    }

    pub fn get(&self, name: &str) -> Option<&TypeDef> {
        self.types.get(name)
    }

    /// Sets unnamed root types to `Query` and `Mutation`. Returns an error if there is no query type.
    fn with_roots(mut self) -> Result<Self, ImportError> {
        if self.query.is_empty() && self.types.contains_key("Query") {
            self.query = "Query".to_owned();
        }
        if self.mutation.is_empty() && self.types.contains_key("Mutation") {
            self.mutation = "Mutation".to_owned();
        }
        if !self.types.contains_key(&self.query) {
            return Err(ImportError::NotGraphql("it has no query type".to_owned()));
        }
        Ok(self)
    }
}

fn looks_like_json(text: &str) -> bool {
    let head: String = text.chars().filter(|c| !c.is_whitespace()).take(3).collect();
    head.starts_with("{\"")
}

fn from_sdl(text: &str) -> Result<Schema, ImportError> {
    // The limits bound the cost of a hostile schema. Real schemas stay far below them.
    let tree = Parser::new(text).recursion_limit(200).token_limit(8_000_000).parse();
    if let Some(error) = tree.errors().next() {
        let message: String =
            error.message().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(160).collect();
        return Err(ImportError::NotGraphql(message));
    }
    let mut schema = Schema::default();
    for definition in tree.document().definitions() {
        match definition {
            cst::Definition::SchemaDefinition(d) => set_roots(&mut schema, d.root_operation_type_definitions()),
            cst::Definition::SchemaExtension(d) => set_roots(&mut schema, d.root_operation_type_definitions()),
            other => {
                if let Some(def) = def_of(&other) {
                    add(&mut schema, def);
                }
            }
        }
    }
    schema.with_roots()
}

fn set_roots(schema: &mut Schema, all: cst::CstChildren<cst::RootOperationTypeDefinition>) {
    for root in all {
        let name = root.named_type().and_then(|t| t.name()).map(|n| n.text().to_string()).unwrap_or_default();
        let kind = root.operation_type();
        if kind.as_ref().is_some_and(|k| k.query_token().is_some()) {
            schema.query = name;
        } else if kind.as_ref().is_some_and(|k| k.mutation_token().is_some()) {
            schema.mutation = name;
        }
    }
}

/// Adds a type definition, or extends the definition that has the same name.
fn add(schema: &mut Schema, def: TypeDef) {
    match schema.types.get_mut(&def.name) {
        Some(known) => {
            known.fields.extend(def.fields);
            known.implements.extend(def.implements);
            known.values.extend(def.values);
        }
        None => {
            schema.types.insert(def.name.clone(), def);
        }
    }
}

fn new_def(name: Option<cst::Name>, kind: TypeKind, description: Option<cst::Description>) -> Option<TypeDef> {
    let name = name?.text().to_string();
    let description = description_text(description);
    Some(TypeDef { name, kind, description, fields: IndexMap::new(), implements: Vec::new(), values: Vec::new() })
}

/// Returns the type definition of an SDL definition or extension; `None` for directives and for the schema itself.
fn def_of(definition: &cst::Definition) -> Option<TypeDef> {
    use cst::Definition as D;
    let mut def = match definition {
        D::ObjectTypeDefinition(d) => new_def(d.name(), TypeKind::Object, d.description()),
        D::ObjectTypeExtension(d) => new_def(d.name(), TypeKind::Object, None),
        D::InterfaceTypeDefinition(d) => new_def(d.name(), TypeKind::Interface, d.description()),
        D::InterfaceTypeExtension(d) => new_def(d.name(), TypeKind::Interface, None),
        D::InputObjectTypeDefinition(d) => new_def(d.name(), TypeKind::Input, d.description()),
        D::InputObjectTypeExtension(d) => new_def(d.name(), TypeKind::Input, None),
        D::EnumTypeDefinition(d) => new_def(d.name(), TypeKind::Enum, d.description()),
        D::UnionTypeDefinition(d) => new_def(d.name(), TypeKind::Union, d.description()),
        D::ScalarTypeDefinition(d) => new_def(d.name(), TypeKind::Scalar, d.description()),
        _ => None,
    }?;
    let (fields, implements) = match definition {
        D::ObjectTypeDefinition(d) => (d.fields_definition(), d.implements_interfaces()),
        D::ObjectTypeExtension(d) => (d.fields_definition(), d.implements_interfaces()),
        D::InterfaceTypeDefinition(d) => (d.fields_definition(), d.implements_interfaces()),
        D::InterfaceTypeExtension(d) => (d.fields_definition(), d.implements_interfaces()),
        _ => (None, None),
    };
    for field in fields.into_iter().flat_map(|f| f.field_definitions()).filter_map(|f| field_of(&f)) {
        def.fields.insert(field.name.clone(), field);
    }
    let named = implements.into_iter().flat_map(|i| i.named_types());
    def.implements = named.filter_map(|t| Some(t.name()?.text().to_string())).collect();
    let inputs = match definition {
        D::InputObjectTypeDefinition(d) => d.input_fields_definition(),
        D::InputObjectTypeExtension(d) => d.input_fields_definition(),
        _ => None,
    };
    for input in inputs.into_iter().flat_map(|f| f.input_value_definitions()).filter_map(|i| arg_of(&i)) {
        let Arg { name, mut ty, has_default, description } = input;
        // `Field` has no place for a default, so a field with a default is stored as not required.
        ty.required &= !has_default;
        def.fields.insert(name.clone(), Field { name, args: Vec::new(), ty, description, deprecated: false });
    }
    if let D::EnumTypeDefinition(d) = definition {
        let values = d.enum_values_definition().into_iter().flat_map(|v| v.enum_value_definitions());
        def.values = values.filter_map(|v| Some(v.enum_value()?.name()?.text().to_string())).collect();
    }
    Some(def)
}

fn field_of(field: &cst::FieldDefinition) -> Option<Field> {
    let args = field.arguments_definition().into_iter().flat_map(|a| a.input_value_definitions());
    let directives = field.directives().into_iter().flat_map(|d| d.directives());
    let deprecated = directives.into_iter().any(|d| d.name().is_some_and(|n| n.text() == "deprecated"));
    Some(Field {
        name: field.name()?.text().to_string(),
        args: args.filter_map(|a| arg_of(&a)).collect(),
        ty: type_of(&field.ty()?),
        description: description_text(field.description()),
        deprecated,
    })
}

fn arg_of(input: &cst::InputValueDefinition) -> Option<Arg> {
    Some(Arg {
        name: input.name()?.text().to_string(),
        ty: type_of(&input.ty()?),
        has_default: input.default_value().is_some(),
        description: description_text(input.description()),
    })
}

fn description_text(description: Option<cst::Description>) -> String {
    description.and_then(|d| d.string_value()).map(|s| String::from(&s)).unwrap_or_default()
}

fn type_of(ty: &cst::Type) -> TypeRef {
    let text: String =
        ty.syntax().text().to_string().chars().filter(|c| "[]!_".contains(*c) || c.is_ascii_alphanumeric()).collect();
    type_ref(text)
}

fn type_ref(text: String) -> TypeRef {
    let name: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    TypeRef { name, is_list: text.starts_with('['), required: text.ends_with('!'), text }
}

/// Reads the answer to an introspection query: `{data: {__schema: …}}`, `{__schema: …}` or the schema object alone.
fn from_introspection(value: &Value) -> Result<Schema, ImportError> {
    let root = ["/data/__schema", "/__schema"].iter().find_map(|path| value.pointer(path)).unwrap_or(value);
    let Some(types) = root.get("types").and_then(Value::as_array) else {
        return Err(ImportError::NotGraphql("it is JSON, but no answer to an introspection query".to_owned()));
    };
    let root_type_name =
        |key: &str| root.get(key).and_then(|t| t.get("name")).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut schema =
        Schema { types: IndexMap::new(), query: root_type_name("queryType"), mutation: root_type_name("mutationType") };
    for def in types.iter().filter_map(introspected_def) {
        schema.types.insert(def.name.clone(), def);
    }
    schema.with_roots()
}

fn introspected_def(value: &Value) -> Option<TypeDef> {
    let kind = match value.get("kind")?.as_str()? {
        "OBJECT" => TypeKind::Object,
        "INTERFACE" => TypeKind::Interface,
        "UNION" => TypeKind::Union,
        "INPUT_OBJECT" => TypeKind::Input,
        "ENUM" => TypeKind::Enum,
        "SCALAR" => TypeKind::Scalar,
        _ => return None,
    };
    let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
    let fields = list("fields").chain(list("inputFields")).filter_map(introspected_field);
    let names =
        |key: &str| -> Vec<String> { list(key).filter_map(|v| v.get("name")?.as_str()).map(str::to_owned).collect() };
    Some(TypeDef {
        name: value.get("name")?.as_str()?.to_owned(),
        kind,
        description: text(value, "description"),
        fields: fields.map(|field| (field.name.clone(), field)).collect(),
        implements: names("interfaces"),
        values: names("enumValues"),
    })
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn introspected_field(value: &Value) -> Option<Field> {
    let args = value.get("args").and_then(Value::as_array).into_iter().flatten();
    let arg = |arg: &Value| {
        Some(Arg {
            name: arg.get("name")?.as_str()?.to_owned(),
            ty: type_ref(introspected_type(arg.get("type")?, 0)),
            has_default: arg.get("defaultValue").is_some_and(|v| !v.is_null()),
            description: text(arg, "description"),
        })
    };
    Some(Field {
        name: value.get("name")?.as_str()?.to_owned(),
        args: args.filter_map(arg).collect(),
        ty: type_ref(introspected_type(value.get("type")?, 0)),
        description: text(value, "description"),
        deprecated: value.get("isDeprecated").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// Returns the text of a type in SDL. The depth limit of 8 ends hostile nesting; real types have at most four levels of
/// `ofType`.
fn introspected_type(value: &Value, depth: usize) -> String {
    let inner =
        || value.get("ofType").filter(|_| depth < 8).map(|of| introspected_type(of, depth + 1)).unwrap_or_default();
    match value.get("kind").and_then(Value::as_str) {
        Some("NON_NULL") => format!("{}!", inner()),
        Some("LIST") => format!("[{}]", inner()),
        _ => text(value, "name"),
    }
}

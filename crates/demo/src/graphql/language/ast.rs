//! What a GraphQL text says, as data.
//! Invariant: whatever a problem may point at carries its place.

use crate::graphql::problem::At;

#[derive(Debug, Default)]
pub struct Document {
    pub operations: Vec<Operation>,
    pub fragments: Vec<Fragment>,
}

#[derive(Debug)]
pub struct Operation {
    pub kind: OperationKind,
    pub name: Option<String>,
    pub variables: Vec<Variable>,
    pub selections: Vec<Selection>,
    pub at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    Query,
    Mutation,
    Subscription,
}

#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub of: TypeRef,
    pub default: Option<Literal>,
    pub at: At,
}

#[derive(Debug)]
pub struct Fragment {
    pub name: String,
    pub on: String,
    pub selections: Vec<Selection>,
}

#[derive(Debug)]
pub enum Selection {
    Field(Field),
    Spread { name: String, directives: Vec<Directive>, at: At },
    Inline { on: Option<String>, directives: Vec<Directive>, selections: Vec<Selection>, at: At },
}

#[derive(Debug)]
pub struct Field {
    pub alias: Option<String>,
    pub name: String,
    pub arguments: Vec<Argument>,
    pub directives: Vec<Directive>,
    pub selections: Vec<Selection>,
    pub at: At,
}

#[derive(Debug)]
pub struct Argument {
    pub name: String,
    pub value: Literal,
}

#[derive(Debug)]
pub struct Directive {
    pub name: String,
    pub arguments: Vec<Argument>,
    pub at: At,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Variable(String),
    Int(i64),
    Float(f64),
    Text(String),
    /// A text that came in JSON, where it may be the word of an enum.
    Sent(String),
    Boolean(bool),
    Null,
    Enum(String),
    List(Vec<Literal>),
    Object(Vec<(String, Literal)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    Named(String),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

/// One definition of a schema.
#[derive(Debug, Clone)]
pub struct TypeDef {
    pub name: String,
    pub about: Option<String>,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Scalar,
    Enum(Vec<EnumValue>),
    Object { interfaces: Vec<String>, fields: Vec<FieldDef> },
    Interface { fields: Vec<FieldDef> },
    Union(Vec<String>),
    Input(Vec<InputDef>),
}

#[derive(Debug, Clone)]
pub struct FieldDef {
    pub name: String,
    pub about: Option<String>,
    pub arguments: Vec<InputDef>,
    pub of: TypeRef,
    /// Why not to use it.
    pub deprecated: Option<String>,
}

/// An argument or a field of an input object.
#[derive(Debug, Clone)]
pub struct InputDef {
    pub name: String,
    pub about: Option<String>,
    pub of: TypeRef,
    pub default: Option<Literal>,
}

#[derive(Debug, Clone)]
pub struct EnumValue {
    pub name: String,
    pub about: Option<String>,
}

impl Field {
    /// Under which name the answer has it.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

impl TypeRef {
    /// The name inside all lists and exclamation marks.
    pub fn name(&self) -> &str {
        match self {
            TypeRef::Named(name) => name,
            TypeRef::List(of) | TypeRef::NonNull(of) => of.name(),
        }
    }

    pub fn is_required(&self) -> bool {
        matches!(self, TypeRef::NonNull(_))
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeRef::Named(name) => write!(f, "{name}"),
            TypeRef::List(of) => write!(f, "[{of}]"),
            TypeRef::NonNull(of) => write!(f, "{of}!"),
        }
    }
}

/// As it would be written, which is what introspection shows of a default.
impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Variable(name) => write!(f, "${name}"),
            Literal::Int(number) => write!(f, "{number}"),
            Literal::Float(number) => write!(f, "{number}"),
            Literal::Text(text) | Literal::Sent(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
            Literal::Boolean(truth) => write!(f, "{truth}"),
            Literal::Null => write!(f, "null"),
            Literal::Enum(name) => write!(f, "{name}"),
            Literal::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Literal::Object(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                write!(f, "{{{}}}", fields.join(", "))
            }
        }
    }
}

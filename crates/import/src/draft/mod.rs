//! A catalog in the making: what the reader of catalogs would be given, before it is written down.
//! Invariant: plain data; whether it is a good catalog is for `catalog::read` to say.

mod quote;
mod write;

use serde_json::Value;

pub use catalog::Kind;
pub use write::{Written, write};

#[derive(Debug, Clone, PartialEq)]
pub enum Ty {
    Named(String),
    Ref(String),
    Array(Box<Ty>),
    Select(Vec<String>),
    MultiSelect(Vec<String>),
    Object(Vec<Slot>),
    Union { tag: String, arms: Vec<(String, Vec<Slot>)> },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    pub name: String,
    pub ty: Ty,
    pub required: bool,
}

/// Where a field lies in the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Own,
    At(String),
    /// One path for each part of a reference's key.
    Parts(Vec<(String, String)>),
    /// Never in the answer: known from what was asked.
    Asked,
    Header(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub ty: Ty,
    pub place: Place,
    /// A number that travels as text.
    pub as_text: bool,
    /// Long: left out of a table that is too long.
    pub long: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Via {
    By { capability: String, with: Vec<(String, String)> },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    pub name: String,
    pub many: bool,
    pub target: String,
    pub via: Via,
}

#[derive(Debug, Clone, Default)]
pub struct Entity {
    pub name: String,
    pub about: String,
    pub words: Vec<String>,
    pub key: Vec<String>,
    pub primary_read: Option<String>,
    pub fields: Vec<Field>,
    pub relations: Vec<Relation>,
    /// Where a person should look.
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    pub ty: Ty,
    pub required: bool,
    pub role: Option<&'static str>,
    pub list: Option<&'static str>,
    pub as_text: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Json { shape: Value, media: Option<String> },
    Form(Value),
    Multipart(Vec<(String, Value)>),
    Raw { hole: String, media: String },
}

#[derive(Debug, Clone, PartialEq)]
pub enum PageForm {
    Page { send: String, from: u64 },
    Offset(String),
    Cursor { read: String, send: String },
    Link,
    Next(String),
    Last { field: String, send: String },
    Connection { at: String, send: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Paging {
    pub form: PageForm,
    pub size: Option<(String, u64)>,
    pub total: Option<String>,
    pub more: Option<String>,
    pub in_body: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Http(String),
    Graphql { document: String, variables: Vec<(String, Value)> },
}

#[derive(Debug, Clone)]
pub struct Capability {
    pub name: String,
    pub kind: Kind,
    pub entity: String,
    pub about: String,
    pub words: Vec<String>,
    pub text: Option<String>,
    pub params: Vec<Param>,
    pub call: Call,
    pub headers: Vec<(String, String)>,
    pub body: Option<Body>,
    /// Of a list `rows`, of anything else `row`.
    pub rows: Option<String>,
    pub item: Option<String>,
    pub wrap: Option<String>,
    pub entries: Option<String>,
    pub sparse: bool,
    pub silent: bool,
    pub returns: Option<String>,
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub once: Option<Once>,
    /// Whether the key of a row fills holes of it.
    pub instance: bool,
    /// The operation that it is.
    pub from: String,
    pub note: Option<String>,
}

/// By what the API recognises a repeated write.
#[derive(Debug, Clone, PartialEq)]
pub enum Once {
    Header(String),
    Natural,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Auth {
    Bearer(String),
    Header { name: String, secret: String, prefix: Option<String> },
    Query { name: String, secret: String },
    Basic { user: String, password: String },
    Oauth2 { origin: String, path: String, id: String, secret: String, scopes: Vec<String> },
}

#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub id: String,
    pub title: String,
    pub origin: String,
    pub auth: Option<Auth>,
    pub anonymous: bool,
    pub graphql: Option<String>,
    pub headers: Vec<(String, String)>,
    pub failure: Option<(String, String)>,
    pub types: Vec<(String, Ty)>,
    pub entities: Vec<Entity>,
    pub capabilities: Vec<Capability>,
    /// Said at the head of the file.
    pub notes: Vec<String>,
}

impl Ty {
    pub fn named(name: &str) -> Self {
        Ty::Named(name.to_owned())
    }

    pub fn is_json(&self) -> bool {
        matches!(self, Ty::Named(name) if name == "json")
    }

    /// Slots that it unfolds to, for the reader's limit.
    pub fn slots(&self) -> usize {
        match self {
            Ty::Array(of) => 1 + of.slots(),
            Ty::Object(slots) => 1 + slots.iter().map(|slot| slot.ty.slots()).sum::<usize>(),
            Ty::Union { arms, .. } => {
                1 + arms.iter().flat_map(|(_, slots)| slots).map(|slot| slot.ty.slots()).sum::<usize>()
            }
            _ => 1,
        }
    }
}

impl Capability {
    pub fn new(name: String, kind: Kind, entity: String, call: Call) -> Self {
        Self {
            name,
            kind,
            entity,
            about: String::new(),
            words: Vec::new(),
            text: None,
            params: Vec::new(),
            call,
            headers: Vec::new(),
            body: None,
            rows: None,
            item: None,
            wrap: None,
            entries: None,
            sparse: false,
            silent: false,
            returns: None,
            gives: None,
            paging: None,
            once: None,
            instance: false,
            from: String::new(),
            note: None,
        }
    }
}

impl Draft {
    /// Slots of all types, for the reader's limit.
    pub fn slots(&self) -> usize {
        let fields = self.entities.iter().flat_map(|e| &e.fields).map(|f| f.ty.slots());
        let params = self.capabilities.iter().flat_map(|c| &c.params).map(|p| p.ty.slots());
        let types = self.types.iter().map(|(_, ty)| ty.slots());
        fields.chain(params).chain(types).sum()
    }
}

//! The templates of request bodies and GraphQL variables, and GraphQL documents.
//! Invariant: a hole that stands alone keeps the JSON type of its value, and a part without a value is left out. A value is
//! never parsed again as text.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template::{Hole, Template};

/// The body of a request over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    Json {
        shape: ValueTemplate,
        /// The content type, if it is not `application/json`.
        content_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`, with nested objects and arrays as `a[b]` and `a[]`.
    Form(ValueTemplate),
    Multipart(Vec<MultipartPart>),
    /// One value that is sent as its text or its bytes.
    Raw {
        value: ValueTemplate,
        content_type: String,
    },
}

/// One part of a multipart body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultipartPart {
    pub name: String,
    pub value: ValueTemplate,
    /// The file's name. A part with a file name is sent as a file.
    pub file_name: Option<Template>,
    pub content_type: Option<String>,
}

/// A JSON value with holes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueTemplate {
    /// A value without holes.
    Fixed(Value),
    /// One hole, whose value keeps its JSON type.
    Hole(Hole),
    /// Text around holes, which becomes a string.
    Text(Template),
    Object(IndexMap<String, ValueTemplate>),
    Array(Vec<ValueTemplate>),
}

/// A GraphQL document, in which the needed fields of an entity are selected at certain places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Text and selections in the order of the document.
    pub pieces: Vec<DocumentPiece>,
}

/// A part of a GraphQL document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentPiece {
    Literal(String),
    /// `...Ticket`: the needed fields of this entity are written here.
    Selection(String),
}

impl ValueTemplate {
    /// Returns the holes that are a value by themselves, not part of a text.
    pub fn lone_holes(&self) -> Vec<&Hole> {
        let mut holes = Vec::new();
        self.for_each_leaf(&mut |leaf| {
            if let ValueTemplate::Hole(hole) = leaf {
                holes.push(hole);
            }
        });
        holes
    }

    /// Returns all holes.
    pub fn holes(&self) -> Vec<&Hole> {
        let mut holes = Vec::new();
        self.for_each_leaf(&mut |leaf| match leaf {
            ValueTemplate::Hole(hole) => holes.push(hole),
            ValueTemplate::Text(template) => holes.extend(template.holes()),
            _ => {}
        });
        holes
    }

    /// Returns the templates that put text around holes.
    pub fn texts(&self) -> Vec<&Template> {
        let mut templates = Vec::new();
        self.for_each_leaf(&mut |leaf| {
            if let ValueTemplate::Text(template) = leaf {
                templates.push(template);
            }
        });
        templates
    }

    /// Calls `visit` for each value that is neither an object nor an array, in the order of the template.
    fn for_each_leaf<'t>(&'t self, visit: &mut dyn FnMut(&'t ValueTemplate)) {
        match self {
            ValueTemplate::Fixed(_) | ValueTemplate::Hole(_) | ValueTemplate::Text(_) => visit(self),
            ValueTemplate::Object(parts) => parts.values().for_each(|part| part.for_each_leaf(visit)),
            ValueTemplate::Array(items) => items.iter().for_each(|item| item.for_each_leaf(visit)),
        }
    }
}

impl Body {
    /// Returns the templates that put text around holes.
    pub fn texts(&self) -> Vec<&Template> {
        match self {
            Body::Json { shape, .. } | Body::Form(shape) => shape.texts(),
            Body::Raw { value, .. } => value.texts(),
            Body::Multipart(parts) => {
                parts.iter().flat_map(|p| p.value.texts().into_iter().chain(&p.file_name)).collect()
            }
        }
    }

    /// Returns all holes.
    pub fn holes(&self) -> Vec<&Hole> {
        match self {
            Body::Json { shape, .. } | Body::Form(shape) => shape.holes(),
            Body::Raw { value, .. } => value.holes(),
            Body::Multipart(parts) => parts
                .iter()
                .flat_map(|p| p.value.holes().into_iter().chain(p.file_name.iter().flat_map(Template::holes)))
                .collect(),
        }
    }
}

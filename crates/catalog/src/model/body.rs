//! Templates of request bodies and of GraphQL variables, and GraphQL documents.
//! Invariant: a hole that is a whole JSON value keeps the type of the argument. A part whose hole has no argument is
//! left out. A filled value is never parsed as a template again.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template::{Hole, Template};

/// The template of an HTTP request's body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    Json {
        shape: ValueTemplate,
        /// The content type, if it differs from `application/json`.
        content_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`, with nested objects and arrays as `a[b]` and `a[]`.
    Form(ValueTemplate),
    Multipart(Vec<MultipartPart>),
    /// One value that is the whole body, as text or as bytes.
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
    /// The name of the file, if the part is sent as a file.
    pub file_name: Option<Template>,
    pub content_type: Option<String>,
}

/// A JSON value in which holes are places for arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueTemplate {
    /// A value without holes.
    Fixed(Value),
    /// One hole. The argument is inserted with its JSON type.
    Hole(Hole),
    /// A text with holes. The filled text is inserted as a string.
    Text(Template),
    Object(IndexMap<String, ValueTemplate>),
    Array(Vec<ValueTemplate>),
}

/// A GraphQL document with marked places, where binding inserts the selection of an entity's needed fields.
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
    /// A spread such as `...Ticket`. Binding replaces the spread by the needed fields of this entity.
    Selection(String),
}

impl ValueTemplate {
    /// Returns the holes that are a whole JSON value, without the holes inside texts.
    pub fn whole_value_holes(&self) -> Vec<&Hole> {
        let mut holes = Vec::new();
        self.for_each_leaf(&mut |leaf| {
            if let ValueTemplate::Hole(hole) = leaf {
                holes.push(hole);
            }
        });
        holes
    }

    /// Returns all holes: whole values and holes inside texts.
    pub fn holes(&self) -> Vec<&Hole> {
        let mut holes = Vec::new();
        self.for_each_leaf(&mut |leaf| match leaf {
            ValueTemplate::Hole(hole) => holes.push(hole),
            ValueTemplate::Text(template) => holes.extend(template.holes()),
            _ => {}
        });
        holes
    }

    /// Returns the templates that combine text with holes.
    pub fn text_templates(&self) -> Vec<&Template> {
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
    /// Returns the templates that combine text with holes.
    pub fn text_templates(&self) -> Vec<&Template> {
        match self {
            Body::Json { shape, .. } | Body::Form(shape) => shape.text_templates(),
            Body::Raw { value, .. } => value.text_templates(),
            Body::Multipart(parts) => {
                parts.iter().flat_map(|p| p.value.text_templates().into_iter().chain(&p.file_name)).collect()
            }
        }
    }

    /// Returns all holes: whole values and holes inside texts.
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

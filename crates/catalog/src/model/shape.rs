//! What a body or a variable is made of: fixed values, holes, and objects and arrays of them; and GraphQL documents.
//! Invariant: a hole that stands alone keeps its value's JSON type; a part without a value is left out; a value is never text
//! that someone reads again.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::template::{Hole, Template};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    Json {
        shape: Shape,
        /// Where it is not `application/json`.
        content_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`; nested objects and arrays as `a[b]` and `a[]`.
    Form(Shape),
    Multipart(Vec<Part>),
    /// One value as it is.
    Raw {
        value: Shape,
        content_type: String,
    },
}

/// One part of a multipart body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub value: Shape,
    /// Makes it a file.
    pub file_name: Option<Template>,
    pub content_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Fixed(Value),
    Hole(Hole),
    /// Text around holes.
    Text(Template),
    Object(IndexMap<String, Shape>),
    Array(Vec<Shape>),
}

/// A GraphQL document: text, and the places where the needed fields of the row's entity are selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Piece {
    Literal(String),
    /// `...Ticket`: the fields of this entity that are needed.
    Selection(String),
}

impl Shape {
    /// Holes that are a value by themselves, not part of a text.
    pub fn lone_holes(&self) -> Vec<&Hole> {
        let mut found = Vec::new();
        let mut work = vec![self];
        while let Some(shape) = work.pop() {
            match shape {
                Shape::Fixed(_) | Shape::Text(_) => {}
                Shape::Hole(hole) => found.push(hole),
                Shape::Object(parts) => work.extend(parts.values()),
                Shape::Array(items) => work.extend(items),
            }
        }
        found
    }

    pub fn holes(&self) -> Vec<&Hole> {
        let mut found = Vec::new();
        let mut work = vec![self];
        while let Some(shape) = work.pop() {
            match shape {
                Shape::Fixed(_) => {}
                Shape::Hole(hole) => found.push(hole),
                Shape::Text(template) => found.extend(template.holes()),
                Shape::Object(parts) => work.extend(parts.values()),
                Shape::Array(items) => work.extend(items),
            }
        }
        found
    }
}

impl Shape {
    /// The templates in it that make text around holes.
    pub fn texts(&self) -> Vec<&Template> {
        match self {
            Shape::Fixed(_) | Shape::Hole(_) => Vec::new(),
            Shape::Text(template) => vec![template],
            Shape::Object(parts) => parts.values().flat_map(Shape::texts).collect(),
            Shape::Array(items) => items.iter().flat_map(Shape::texts).collect(),
        }
    }
}

impl Body {
    pub fn texts(&self) -> Vec<&Template> {
        match self {
            Body::Json { shape, .. } | Body::Form(shape) => shape.texts(),
            Body::Raw { value, .. } => value.texts(),
            Body::Multipart(parts) => {
                parts.iter().flat_map(|p| p.value.texts().into_iter().chain(&p.file_name)).collect()
            }
        }
    }

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

//! Bodies as written: JSON, forms, parts, bytes, and the holes in them.
//! Invariant: at most one body; a name or a content type in it cannot end its part or start another.

use indexmap::IndexMap;
use serde_json::Value;

use super::capability::Written;
use super::{Cx, Mistake};
use crate::codes;
use crate::model::{Body, Part, Shape};
use crate::read::places::At;
use crate::read::raw::PartShape;

impl Cx<'_> {
    /// `Some(None)` is no body; `None` is a mistake.
    pub(super) fn body(&mut self, of: &Written<'_>) -> Option<Option<Body>> {
        let (raw, name) = (of.raw, of.name);
        let given = [
            ("body", raw.body.is_some()),
            ("form", raw.form.is_some()),
            ("multipart", raw.multipart.is_some()),
            ("raw", raw.raw.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
        if let [_, second, ..] = given.as_slice() {
            let message = format!("`{name}` has several bodies; write one of `body`, `form`, `multipart`, `raw`");
            self.report(Mistake::new(codes::MAPPING, of.at.key(second).here(), message));
            return None;
        }
        let content_type = raw.content_type.clone();
        if let Some(text) = &content_type {
            let at = of.at.key("content_type");
            self.content_type(&at, text);
            if raw.body.is_none() && raw.raw.is_none() {
                let message = format!("`{name}`: `content_type` belongs to `body` or `raw`");
                self.report(Mistake::new(codes::MAPPING, at.here(), message));
                return None;
            }
        }
        Some(if let Some(json) = &raw.body {
            Some(Body::Json { shape: self.shape(&of.at.key("body"), name, json)?, content_type })
        } else if let Some(form) = &raw.form {
            let at = of.at.key("form");
            if !form.is_object() {
                let message = format!("`{name}`: a form is a map of names");
                self.report(Mistake::new(codes::MAPPING, at.here(), message).write("form: {title: \"{title}\"}"));
                return None;
            }
            Some(Body::Form(self.shape(&at, name, form)?))
        } else if let Some(parts) = &raw.multipart {
            Some(Body::Multipart(self.multipart(of, parts)?))
        } else if let Some(value) = &raw.raw {
            let value = self.shape(&of.at.key("raw"), name, &Value::String(value.clone()))?;
            let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Body::Raw { value, content_type })
        } else {
            None
        })
    }

    fn multipart(&mut self, of: &Written<'_>, parts: &IndexMap<String, PartShape>) -> Option<Vec<Part>> {
        let all = of.at.key("multipart");
        if parts.is_empty() {
            let message = format!("`{}`: a multipart body has at least one part", of.name);
            self.report(Mistake::new(codes::MAPPING, all.here(), message).write("multipart: {note: \"{note}\"}"));
        }
        let mut out = Vec::new();
        for (part, shape) in parts {
            let at = all.key(part);
            if part.is_empty() || part.chars().any(|c| c.is_control() || c == '"') {
                let message = format!("`{}` cannot be the name of a part", part.escape_debug());
                self.report(Mistake::new(codes::MAPPING, at.here(), message));
            }
            let (value, file, content_type) = match shape {
                PartShape::Value(value) => (value, None, None),
                PartShape::File(file) => (&file.value, file.file.as_ref(), file.content_type.clone()),
            };
            if let Some(kind) = &content_type {
                self.content_type(&at.key("content_type"), kind);
            }
            let value = self.shape(&at.key("value"), of.name, &Value::String(value.clone()))?;
            let file_name = match file {
                Some(file) => Some(self.template(&at.key("file"), of.name, file)?),
                None => None,
            };
            out.push(Part { name: part.clone(), value, file_name, content_type });
        }
        Some(out)
    }

    /// A body as written: a string with holes is a template, a string that is one hole is the value itself.
    pub(super) fn shape(&mut self, at: &At<'_>, name: &str, value: &Value) -> Option<Shape> {
        Some(match value {
            Value::String(text) if !text.contains(['{', '}']) => Shape::Fixed(value.clone()),
            Value::String(text) => {
                let template = self.template(at, name, text)?;
                match template.only_hole() {
                    Some(hole) => Shape::Hole(hole.clone()),
                    None => Shape::Text(template),
                }
            }
            Value::Object(map) => {
                let mut parts = IndexMap::new();
                for (key, value) in map {
                    let at = at.key(key);
                    if key.contains(['{', '}']) {
                        let message = format!("`{name}`: `{key}` is a name; holes go into values");
                        self.report(Mistake::new(codes::TEMPLATE, at.here(), message));
                    }
                    parts.insert(key.clone(), self.shape(&at, name, value)?);
                }
                Shape::Object(parts)
            }
            Value::Array(items) => {
                let items: Option<Vec<Shape>> =
                    items.iter().enumerate().map(|(n, item)| self.shape(&at.item(n), name, item)).collect();
                Shape::Array(items?)
            }
            fixed => Shape::Fixed(fixed.clone()),
        })
    }
}

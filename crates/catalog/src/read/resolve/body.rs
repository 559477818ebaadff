//! Resolves the bodies of HTTP mappings: JSON, forms, multipart and raw bodies, with holes as places for values.
//! Invariant: a capability has at most one body. No name or content type can end its part of a multipart body or
//! start another part.

use indexmap::IndexMap;
use serde_json::Value;

use super::capability::WrittenCapability;
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Body, MultipartPart, ValueTemplate};
use crate::read::raw::PartShape;
use crate::read::spans::YamlPath;

impl CatalogResolver<'_> {
    /// Resolves the body of a request. Returns `Some(None)` if the request has no body, and `None` after a mistake.
    pub(super) fn resolve_body(&mut self, written: &WrittenCapability<'_>) -> Option<Option<Body>> {
        let raw = written.raw;
        let name = written.name;
        let body_keys = [
            ("body", raw.body.is_some()),
            ("form", raw.form.is_some()),
            ("multipart", raw.multipart.is_some()),
            ("raw", raw.raw.is_some()),
        ];
        let given: Vec<&str> = body_keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
        if let [_, second, ..] = given.as_slice() {
            let message = format!("`{name}` has several bodies; write one of `body`, `form`, `multipart`, `raw`");
            self.report(Mistake::new(codes::MAPPING, written.at.key(second).on_key(), message));
            return None;
        }
        let content_type = raw.content_type.clone();
        if let Some(text) = &content_type {
            let at = written.at.key("content_type");
            self.check_content_type(&at, text);
            if raw.body.is_none() && raw.raw.is_none() {
                let message = format!("`{name}`: `content_type` belongs to `body` or `raw`");
                self.report(Mistake::new(codes::MAPPING, at.on_key(), message));
                return None;
            }
        }
        Some(if let Some(json) = &raw.body {
            Some(Body::Json { shape: self.resolve_value_template(&written.at.key("body"), name, json)?, content_type })
        } else if let Some(form) = &raw.form {
            let at = written.at.key("form");
            if !form.is_object() {
                let message = format!("`{name}`: a form is a map of names");
                self.report(Mistake::new(codes::MAPPING, at.on_key(), message).with_copy("form: {title: \"{title}\"}"));
                return None;
            }
            Some(Body::Form(self.resolve_value_template(&at, name, form)?))
        } else if let Some(parts) = &raw.multipart {
            Some(Body::Multipart(self.resolve_multipart(written, parts)?))
        } else if let Some(value) = &raw.raw {
            let value = self.resolve_value_template(&written.at.key("raw"), name, &Value::String(value.clone()))?;
            let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Body::Raw { value, content_type })
        } else {
            None
        })
    }

    fn resolve_multipart(
        &mut self,
        written: &WrittenCapability<'_>,
        parts: &IndexMap<String, PartShape>,
    ) -> Option<Vec<MultipartPart>> {
        let all = written.at.key("multipart");
        if parts.is_empty() {
            let message = format!("`{}`: a multipart body has at least one part", written.name);
            self.report(Mistake::new(codes::MAPPING, all.on_key(), message).with_copy("multipart: {note: \"{note}\"}"));
        }
        let mut resolved = Vec::new();
        for (part, shape) in parts {
            let at = all.key(part);
            if part.is_empty() || part.chars().any(|c| c.is_control() || c == '"') {
                let message = format!("`{}` cannot be the name of a part", part.escape_debug());
                self.report(Mistake::new(codes::MAPPING, at.on_key(), message));
            }
            let (value, file, content_type) = match shape {
                PartShape::Value(value) => (value, None, None),
                PartShape::File(file) => (&file.value, file.file.as_ref(), file.content_type.clone()),
            };
            if let Some(kind) = &content_type {
                self.check_content_type(&at.key("content_type"), kind);
            }
            let value = self.resolve_value_template(&at.key("value"), written.name, &Value::String(value.clone()))?;
            let file_name = match file {
                Some(file) => Some(self.parse_template(&at.key("file"), written.name, file)?),
                None => None,
            };
            resolved.push(MultipartPart { name: part.clone(), value, file_name, content_type });
        }
        Some(resolved)
    }

    /// Resolves a value with holes. A string with holes becomes a template. A string that is exactly one hole becomes
    /// a hole that keeps the type of the argument.
    pub(super) fn resolve_value_template(
        &mut self,
        at: &YamlPath<'_>,
        name: &str,
        value: &Value,
    ) -> Option<ValueTemplate> {
        Some(match value {
            Value::String(text) if !text.contains(['{', '}']) => ValueTemplate::Fixed(value.clone()),
            Value::String(text) => {
                let template = self.parse_template(at, name, text)?;
                match template.only_hole() {
                    Some(hole) => ValueTemplate::Hole(hole.clone()),
                    None => ValueTemplate::Text(template),
                }
            }
            Value::Object(map) => {
                let mut parts = IndexMap::new();
                for (key, value) in map {
                    let at = at.key(key);
                    if key.contains(['{', '}']) {
                        let message = format!("`{name}`: `{key}` is a name; holes go into values");
                        self.report(Mistake::new(codes::TEMPLATE, at.on_key(), message));
                    }
                    parts.insert(key.clone(), self.resolve_value_template(&at, name, value)?);
                }
                ValueTemplate::Object(parts)
            }
            Value::Array(items) => {
                let items: Option<Vec<ValueTemplate>> = items
                    .iter()
                    .enumerate()
                    .map(|(n, item)| self.resolve_value_template(&at.item(n), name, item))
                    .collect();
                ValueTemplate::Array(items?)
            }
            fixed => ValueTemplate::Fixed(fixed.clone()),
        })
    }
}

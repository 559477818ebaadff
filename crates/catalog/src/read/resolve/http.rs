//! HTTP mappings: `GET /path/{hole}?name={hole}`, headers and bodies.
//! Invariant: templates are parsed here, once; a header or a path that could become another one is refused.

use base::{Diagnostic, Method, Span};
use indexmap::IndexMap;
use serde_json::Value;

use super::Cx;
use crate::codes;
use crate::model::{Body, Http, Kind, Part, Shape};
use crate::read::raw::{self, PartShape, Text};
use crate::template::Template;

impl Cx<'_> {
    pub(super) fn http(&mut self, name: &str, kind: Kind, raw: &raw::Capability, text: &Text) -> Option<Http> {
        let place = self.place(text);
        let refuse = |message: String| Diagnostic::error(codes::MAPPING, place, message);
        let Some((method, target)) = text.value.split_once(' ') else {
            self.report(refuse(format!("`{name}`: write a method and a path: `GET /tickets`")));
            return None;
        };
        let fits = |method: &Method| match (kind.is_read(), method) {
            (true, Method::Get | Method::Post) => true,
            (true, _) | (false, Method::Get) => false,
            (false, _) => true,
        };
        let Some(method) = Method::parse(method).filter(fits) else {
            let (what, fix) = if kind.is_read() {
                ("a read", "`GET`, or `POST` with a body")
            } else {
                ("a write", "`POST`, `PUT`, `PATCH` or `DELETE`")
            };
            self.report(refuse(format!("`{name}`: `{method}` cannot be {what}; write {fix}")));
            return None;
        };
        let (path, query) = target.trim().split_once('?').unwrap_or((target.trim(), ""));
        if !path.starts_with('/') || path.contains("//") || path.contains(['#', '\\', ' ']) || dotted(path) {
            self.report(refuse(format!("`{name}`: `{path}` is not a path; write `/tickets/{{number}}`")));
            return None;
        }
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((key.to_owned(), self.template(name, value, place)?));
        }
        let path = self.template(name, path, place)?;
        let mut headers = Vec::new();
        for (header, value) in &raw.headers {
            self.header_name(header);
            headers.push((header.clone(), self.template(name, value, self.place_of_word(header))?));
        }
        let body = self.body(name, raw, place)?;
        if body.is_some() && method == Method::Get {
            self.report(refuse(format!("`{name}`: a `GET` has no body; write `POST`")));
            return None;
        }
        Some(Http { method, path, query: pairs, headers, body })
    }

    /// What could end a header, or is for the client to say, is no header of a catalog's.
    pub(super) fn header_name(&mut self, name: &str) {
        let token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let reserved =
            ["host", "content-length", "transfer-encoding", "connection", "accept-encoding", "authorization"];
        if !token || reserved.contains(&name.to_ascii_lowercase().as_str()) {
            let message = format!("`{name}` is not a header that a catalog sets");
            self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(name), message));
        }
    }

    fn template(&mut self, name: &str, text: &str, place: Span) -> Option<Template> {
        Template::parse(text)
            .map_err(|error| self.report(Diagnostic::error(codes::TEMPLATE, place, format!("`{name}`: {error}"))))
            .ok()
    }

    /// `Some(None)` is no body; `None` is a mistake.
    fn body(&mut self, name: &str, raw: &raw::Capability, place: Span) -> Option<Option<Body>> {
        let given = [raw.body.is_some(), raw.form.is_some(), raw.multipart.is_some(), raw.raw.is_some()];
        if given.iter().filter(|g| **g).count() > 1 {
            let message = format!("`{name}` has several bodies; write one of `body`, `form`, `multipart`, `raw`");
            self.report(Diagnostic::error(codes::MAPPING, place, message));
            return None;
        }
        let content_type = raw.content_type.clone();
        if content_type.is_some() && raw.body.is_none() && raw.raw.is_none() {
            let message = format!("`{name}`: `content_type` belongs to `body` or `raw`");
            self.report(Diagnostic::error(codes::MAPPING, place, message));
            return None;
        }
        Some(if let Some(json) = &raw.body {
            Some(Body::Json { shape: self.shape(name, json, place)?, content_type })
        } else if let Some(form) = &raw.form {
            Some(Body::Form(self.shape(name, form, place)?))
        } else if let Some(parts) = &raw.multipart {
            Some(Body::Multipart(self.parts(name, parts, place)?))
        } else if let Some(value) = &raw.raw {
            let value = self.shape(name, &Value::String(value.clone()), place)?;
            let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Body::Raw { value, content_type })
        } else {
            None
        })
    }

    fn parts(&mut self, name: &str, parts: &IndexMap<String, PartShape>, place: Span) -> Option<Vec<Part>> {
        let mut out = Vec::new();
        for (part, shape) in parts {
            let (value, file, content_type) = match shape {
                PartShape::Value(value) => (value, None, None),
                PartShape::File(file) => (&file.value, file.file.as_ref(), file.content_type.clone()),
            };
            let value = self.shape(name, &Value::String(value.clone()), place)?;
            let file_name = match file {
                Some(file) => Some(self.template(name, file, place)?),
                None => None,
            };
            out.push(Part { name: part.clone(), value, file_name, content_type });
        }
        Some(out)
    }

    /// A body as written: a string with holes is a template, a string that is one hole is the value itself.
    pub(super) fn shape(&mut self, name: &str, value: &Value, place: Span) -> Option<Shape> {
        Some(match value {
            Value::String(text) if !text.contains(['{', '}']) => Shape::Fixed(value.clone()),
            Value::String(text) => {
                let template = self.template(name, text, place)?;
                match template.only_hole() {
                    Some(hole) => Shape::Hole(hole.clone()),
                    None => Shape::Text(template),
                }
            }
            Value::Object(map) => {
                let mut parts = IndexMap::new();
                for (key, value) in map {
                    parts.insert(key.clone(), self.shape(name, value, place)?);
                }
                Shape::Object(parts)
            }
            Value::Array(items) => {
                let items: Option<Vec<Shape>> = items.iter().map(|item| self.shape(name, item, place)).collect();
                Shape::Array(items?)
            }
            fixed => Shape::Fixed(fixed.clone()),
        })
    }
}

/// A segment that a client takes out before it sends.
fn dotted(path: &str) -> bool {
    path.split('/').any(|segment| matches!(segment.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e"))
}

//! Resolves HTTP mappings: the method, path and query of `GET /path/{hole}?name={hole}`, and the headers.
//! Invariant: templates are parsed once, by this module. A header, a parameter or a path is refused if a client or a
//! server could read it as another header, parameter or path.

use base::{Auth, Method};

use super::capability::WrittenCapability;
use super::text_rules::is_path;
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Http, Idempotency};
use crate::read::raw::IdempotencyShape;
use crate::read::spans::YamlPath;
use crate::template::Template;

impl CatalogResolver<'_> {
    pub(super) fn resolve_http(&mut self, written: &WrittenCapability<'_>, text: &str) -> Option<Http> {
        let name = written.name;
        let at = written.at.key("http");
        let Some((word, target)) = text.split_once(' ') else {
            let message = format!("`{name}`: write a method and a path");
            self.report(Mistake::new(codes::MAPPING, at.on_value(), message).with_copy("http: GET /tickets"));
            return None;
        };
        let fits_kind = |method: &Method| match (written.kind.is_read(), method) {
            (true, Method::Get | Method::Post) => true,
            (true, _) | (false, Method::Get) => false,
            (false, _) => true,
        };
        let Some(method) = Method::parse(word).filter(fits_kind) else {
            let (role, fix) = if written.kind.is_read() {
                ("a read", "`GET`, or `POST` with a body")
            } else {
                ("a write", "`POST`, `PUT`, `PATCH` or `DELETE`")
            };
            let message = format!("`{name}`: `{}` cannot be {role}; write {fix}", word.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.on_value(), message));
            return None;
        };
        let (path, query) = target.trim().split_once('?').unwrap_or((target.trim(), ""));
        let template = self.parse_template(&at, name, path)?;
        if !is_path(path) {
            let message = format!("`{name}`: `{}` is not a path", path.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.on_word(path), message).with_copy("/tickets/{number}"));
            return None;
        }
        let query = self.resolve_query(written, &at, query)?;
        let headers = self.resolve_headers(written)?;
        let body = self.resolve_body(written)?;
        if body.is_some() && method == Method::Get {
            let message = format!("`{name}`: a `GET` has no body; write `POST`");
            self.report(Mistake::new(codes::MAPPING, at.on_value(), message));
            return None;
        }
        Some(Http { method, path: template, query, headers, body })
    }

    fn resolve_query(
        &mut self,
        written: &WrittenCapability<'_>,
        at: &YamlPath<'_>,
        query: &str,
    ) -> Option<Vec<(String, Template)>> {
        let mut pairs: Vec<(String, Template)> = Vec::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !self.check_query_name(at.on_word(pair), key) {
                return None;
            }
            let template = self.parse_template(at, written.name, value)?;
            if is_encoded(value) {
                let message =
                    format!("`{}`: write the value of `{key}` as it is meant; it is encoded when sent", written.name);
                self.report(Mistake::new(codes::MAPPING, at.on_word(value), message));
            }
            if value.contains('#') {
                let message = format!("`{}`: `{value}` cannot stand in an address", written.name);
                self.report(Mistake::new(codes::MAPPING, at.on_word(value), message));
            }
            let is_credential = matches!(&self.raw.auth, Some(Auth::Query { name, .. }) if name == key);
            let is_fixed = !template.has_holes();
            // `type=a&type=b` is a list of fixed values. If one value of the list is a hole, the list is refused,
            // because an argument could be another item or a replacement of the list.
            if is_credential || pairs.iter().any(|(other, t)| other == key && (!is_fixed || t.has_holes())) {
                let message = format!("`{}` sends `{key}` twice; take one out", written.name);
                self.report(Mistake::new(codes::MAPPING, at.on_word(pair), message));
            }
            pairs.push((key.to_owned(), template));
        }
        Some(pairs)
    }

    fn resolve_headers(&mut self, written: &WrittenCapability<'_>) -> Option<Vec<(String, Template)>> {
        let all = written.at.key("headers");
        let mut earlier: Vec<String> = self.raw.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
        let mut headers = Vec::new();
        for (header, value) in &written.raw.headers {
            let at = all.key(header);
            self.check_header_name(&at, header);
            self.check_header_is_new(&at, header, &earlier);
            if !value.bytes().all(|b| (0x20..0x7f).contains(&b)) || value.trim() != value {
                let message = format!("the value of `{header}` has a character that no header can carry");
                self.report(Mistake::new(codes::MAPPING, at.on_value(), message));
            }
            headers.push((header.clone(), self.parse_template(&at, written.name, value)?));
            earlier.push(header.to_ascii_lowercase());
        }
        if let Some(IdempotencyShape::Header(header)) = &written.raw.idempotency {
            let at = written.at.key("idempotency");
            self.check_header_name(&at.key("header"), header);
            self.check_header_is_new(&at.key("header"), header, &earlier);
        }
        Some(headers)
    }

    /// Resolves the place of the idempotency key in the request, and reports a place that already has another value.
    pub(super) fn resolve_idempotency(
        &mut self,
        written: &WrittenCapability<'_>,
        shape: &IdempotencyShape,
        query: &[(String, Template)],
    ) -> Idempotency {
        let all = written.at.key("idempotency");
        match shape {
            IdempotencyShape::Header(name) => Idempotency::Header(name.clone()),
            IdempotencyShape::Query(name) => {
                let at = all.key("query");
                self.check_query_name(at.on_value(), name);
                if query.iter().any(|(other, _)| other == name) {
                    let message =
                        format!("`{}` sends `{name}` already; the key needs a parameter of its own", written.name);
                    self.report(Mistake::new(codes::MAPPING, at.on_value(), message));
                }
                Idempotency::Query(name.clone())
            }
            IdempotencyShape::Body(path) => {
                let at = all.key("body");
                self.parse_data_path(&at, path);
                if path.is_empty() || path.contains("[]") {
                    let message = format!("`{}`: the key goes to a path of the body", written.name);
                    self.report(Mistake::new(codes::MAPPING, at.on_value(), message).with_copy("{body: request_id}"));
                }
                Idempotency::Body(path.clone())
            }
            IdempotencyShape::Natural => Idempotency::Natural,
        }
    }

    /// Parses a template of the capability `name`, and reports a mistake in the template.
    pub(super) fn parse_template(&mut self, at: &YamlPath<'_>, name: &str, text: &str) -> Option<Template> {
        Template::parse(text)
            .map_err(|error| {
                self.report(Mistake::new(codes::TEMPLATE, at.on_value(), format!("`{name}`: {error}")));
            })
            .ok()
    }
}

/// Returns whether a query value contains an escape such as `%20`, which would be encoded a second time.
fn is_encoded(value: &str) -> bool {
    value.split('%').skip(1).any(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

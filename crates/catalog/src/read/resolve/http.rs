//! HTTP mappings: `GET /path/{hole}?name={hole}` and headers.
//! Invariant: templates are parsed here, once; a header, a parameter or a path that could become another one is refused.

use base::{Auth, Method};

use super::capability::Written;
use super::words::is_path;
use super::{Cx, Mistake};
use crate::codes;
use crate::model::{Http, Idempotency};
use crate::read::places::At;
use crate::read::raw::IdempotencyShape;
use crate::template::Template;

impl Cx<'_> {
    pub(super) fn http(&mut self, of: &Written<'_>, text: &str) -> Option<Http> {
        let (name, at) = (of.name, of.at.key("http"));
        let Some((word, target)) = text.split_once(' ') else {
            let message = format!("`{name}`: write a method and a path");
            self.report(Mistake::new(codes::MAPPING, at.value(), message).write("http: GET /tickets"));
            return None;
        };
        let fits = |method: &Method| match (of.kind.is_read(), method) {
            (true, Method::Get | Method::Post) => true,
            (true, _) | (false, Method::Get) => false,
            (false, _) => true,
        };
        let Some(method) = Method::parse(word).filter(fits) else {
            let (what, fix) = if of.kind.is_read() {
                ("a read", "`GET`, or `POST` with a body")
            } else {
                ("a write", "`POST`, `PUT`, `PATCH` or `DELETE`")
            };
            let message = format!("`{name}`: `{}` cannot be {what}; write {fix}", word.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.value(), message));
            return None;
        };
        let (path, query) = target.trim().split_once('?').unwrap_or((target.trim(), ""));
        let template = self.template(&at, name, path)?;
        if !is_path(path) {
            let message = format!("`{name}`: `{}` is not a path", path.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.word(path), message).write("/tickets/{number}"));
            return None;
        }
        let query = self.query(of, &at, query)?;
        let headers = self.headers(of)?;
        let body = self.body(of)?;
        if body.is_some() && method == Method::Get {
            let message = format!("`{name}`: a `GET` has no body; write `POST`");
            self.report(Mistake::new(codes::MAPPING, at.value(), message));
            return None;
        }
        Some(Http { method, path: template, query, headers, body })
    }

    fn query(&mut self, of: &Written<'_>, at: &At<'_>, query: &str) -> Option<Vec<(String, Template)>> {
        let mut pairs: Vec<(String, Template)> = Vec::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !self.query_name(at.word(pair), key) {
                return None;
            }
            let template = self.template(at, of.name, value)?;
            if is_encoded(value) {
                let message =
                    format!("`{}`: write the value of `{key}` as it is meant; it is encoded when sent", of.name);
                self.report(Mistake::new(codes::MAPPING, at.word(value), message));
            }
            if value.contains('#') {
                let message = format!("`{}`: `{value}` cannot stand in an address", of.name);
                self.report(Mistake::new(codes::MAPPING, at.word(value), message));
            }
            let credential = matches!(&self.raw.auth, Some(Auth::Query { name, .. }) if name == key);
            let fixed = !template.has_holes();
            // `type=a&type=b` is a list; a hole beside it would be one more of them, or not.
            if credential || pairs.iter().any(|(other, t)| other == key && (!fixed || t.has_holes())) {
                let message = format!("`{}` sends `{key}` twice; take one out", of.name);
                self.report(Mistake::new(codes::MAPPING, at.word(pair), message));
            }
            pairs.push((key.to_owned(), template));
        }
        Some(pairs)
    }

    fn headers(&mut self, of: &Written<'_>) -> Option<Vec<(String, Template)>> {
        let all = of.at.key("headers");
        let mut seen: Vec<String> = self.raw.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
        let mut headers = Vec::new();
        for (header, value) in &of.raw.headers {
            let at = all.key(header);
            self.header_name(&at, header);
            self.header_twice(&at, header, &seen);
            if !value.bytes().all(|b| (0x20..0x7f).contains(&b)) || value.trim() != value {
                let message = format!("the value of `{header}` has a character that no header can carry");
                self.report(Mistake::new(codes::MAPPING, at.value(), message));
            }
            headers.push((header.clone(), self.template(&at, of.name, value)?));
            seen.push(header.to_ascii_lowercase());
        }
        if let Some(IdempotencyShape::Header(header)) = &of.raw.idempotency {
            let at = of.at.key("idempotency");
            self.header_name(&at.key("header"), header);
            self.header_twice(&at.key("header"), header, &seen);
        }
        Some(headers)
    }

    /// What recognises a repeated write must not take the place of something else.
    pub(super) fn once(
        &mut self,
        of: &Written<'_>,
        shape: &IdempotencyShape,
        query: &[(String, Template)],
    ) -> Idempotency {
        let all = of.at.key("idempotency");
        match shape {
            IdempotencyShape::Header(name) => Idempotency::Header(name.clone()),
            IdempotencyShape::Query(name) => {
                let at = all.key("query");
                self.query_name(at.value(), name);
                if query.iter().any(|(other, _)| other == name) {
                    let message = format!("`{}` sends `{name}` already; the key needs a parameter of its own", of.name);
                    self.report(Mistake::new(codes::MAPPING, at.value(), message));
                }
                Idempotency::Query(name.clone())
            }
            IdempotencyShape::Body(path) => {
                let at = all.key("body");
                self.data_path(&at, path);
                if path.is_empty() || path.contains("[]") {
                    let message = format!("`{}`: the key goes to a path of the body", of.name);
                    self.report(Mistake::new(codes::MAPPING, at.value(), message).write("{body: request_id}"));
                }
                Idempotency::Body(path.clone())
            }
            IdempotencyShape::Natural => Idempotency::Natural,
        }
    }

    pub(super) fn template(&mut self, at: &At<'_>, name: &str, text: &str) -> Option<Template> {
        Template::parse(text)
            .map_err(|error| {
                self.report(Mistake::new(codes::TEMPLATE, at.value(), format!("`{name}`: {error}")));
            })
            .ok()
    }
}

/// Whether it has what only an encoder writes: `%20`.
fn is_encoded(value: &str) -> bool {
    value.split('%').skip(1).any(|after| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

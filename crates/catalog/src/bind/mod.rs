//! A call to a request: values into the holes of a capability's mapping.
//! Invariant: the request's origin is the catalog's; a value is encoded, never interpreted.

mod body;
mod graphql;

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::{Method, Request};
use serde_json::Value;

use crate::model::{Capability, Catalog, Http, Idempotency, ListStyle, Param, Transport};
use crate::paging::{PageAt, PageRequest, Place};
use crate::template::{Hole, Template};
use crate::types::{Type, Wire, plain_text};

/// Parameter names, and parts of the key, to checked values. `null` is the same as absent, but for what it empties
/// ([`Capability::empties`]).
pub type Args = BTreeMap<String, Value>;

/// What is asked of a capability.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub args: &'a Args,
    pub page: Option<&'a PageRequest>,
    /// The fields of the row that are needed, for transports that can ask for just these; `None` is all.
    pub fields: Option<&'a [String]>,
    /// By what the API recognises this write should it come twice.
    pub once: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("`{capability}` needs a value for `{param}`")]
    Missing { capability: String, param: String },
    #[error(
        "`{capability}`: this value of `{param}` cannot be part of a path (it, or a part of it, is empty, `.` or `..`)"
    )]
    Unsafe { capability: String, param: String },
    #[error(
        "`{capability}`: this value of `{param}` cannot be part of a header (it has a control character, a letter that is not \
         ASCII, or white space at an end)"
    )]
    NotAHeader { capability: String, param: String },
    #[error("`{capability}`: a value of the list `{param}` has the `{separator}` that separates them")]
    Separator { capability: String, param: String, separator: char },
    #[error(
        "`{capability}`: `{param}` stands between quotes there, so it can have no quote, backslash or control character"
    )]
    Quoted { capability: String, param: String },
}

impl<'a> Ask<'a> {
    pub fn new(args: &'a Args) -> Self {
        Self { args, page: None, fields: None, once: None }
    }
}

pub fn bind(catalog: &Catalog, capability: &Capability, ask: &Ask<'_>) -> Result<Request, BindError> {
    let values = Values { catalog, capability, args: ask.args };
    values.separable()?;
    values.quotable()?;
    let mut request = match &capability.transport {
        Transport::Http(http) => bind_http(catalog, &values, http, ask)?,
        Transport::Graphql(graphql) => Request {
            method: Method::Post,
            origin: catalog.origin.clone(),
            path: format!("{}{}", catalog.base_path, graphql.path),
            query: Vec::new(),
            headers: Vec::new(),
            body: Some(graphql::body(catalog, &values, graphql, ask)),
            auth: None,
            anonymous: false,
        },
    };
    request.headers.extend(catalog.headers.iter().cloned());
    request.auth.clone_from(&catalog.auth);
    request.anonymous = catalog.anonymous;
    if let (Some(once), Some(idempotency)) = (ask.once, capability.effect.as_ref().and_then(|e| e.idempotency.as_ref()))
    {
        match idempotency {
            Idempotency::Header(name) => request.headers.push((name.clone(), once.to_owned())),
            Idempotency::Query(name) => request.query.push((name.clone(), once.to_owned())),
            Idempotency::Body(name) => match &capability.transport {
                Transport::Http(_) => body::put(&mut request.body, name, Value::from(once)),
                Transport::Graphql(_) => body::put(&mut request.body, &format!("variables.{name}"), Value::from(once)),
            },
            Idempotency::Natural => {}
        }
    }
    Ok(request)
}

fn bind_http(catalog: &Catalog, values: &Values<'_>, http: &Http, ask: &Ask<'_>) -> Result<Request, BindError> {
    let mut query: Vec<(String, String)> = Vec::with_capacity(http.query.len() + 2);
    for (name, template) in &http.query {
        values.query_pairs(name, template, &mut query);
    }
    let mut path = values.path(&catalog.base_path, &http.path)?;
    let mut body = http.body.as_ref().and_then(|body| body::fill(values, body));
    if let (Some(paging), Some(page)) = (&values.capability.paging, ask.page) {
        match &page.at {
            // The API's own address of the page, with everything in it.
            PageAt::Place { path: there, query: pairs } => (path, query) = (there.clone(), pairs.clone()),
            _ => {
                for (name, value) in paging.ask(page) {
                    match paging.place {
                        Place::Query => query.push((name.to_owned(), plain_text(&value))),
                        Place::Body | Place::Variable => body::put(&mut body, name, value),
                    }
                }
            }
        }
    }
    let headers = values.headers(&http.headers)?;
    Ok(Request {
        method: http.method,
        origin: catalog.origin.clone(),
        path,
        query,
        headers,
        body,
        auth: None,
        anonymous: false,
    })
}

/// The values of one call, by hole.
pub(crate) struct Values<'a> {
    catalog: &'a Catalog,
    capability: &'a Capability,
    args: &'a Args,
}

impl<'a> Values<'a> {
    /// The value of a hole as the API wants it; `null` is none.
    fn wire(&self, hole: &Hole) -> Option<Cow<'a, Value>> {
        let value = self.args.get(&hole.param)?;
        let value = match (&hole.part, value) {
            (None, value) => value,
            (Some(part), Value::Object(parts)) => parts.get(part)?,
            // A reference with a one-part key is that part.
            (Some(_), scalar) => scalar,
        };
        if value.is_null() {
            return None;
        }
        Some(match self.travels(hole) {
            Some((kind, wire)) => kind.to_wire(wire, value),
            None => Cow::Borrowed(value),
        })
    }

    /// Whether `null` was said of what this hole sets.
    fn emptied(&self, hole: &Hole) -> bool {
        hole.part.is_none()
            && self.args.get(&hole.param).is_some_and(Value::is_null)
            && self.capability.empties(&hole.param)
    }

    /// How the value of a hole travels: as its parameter says, or, for a part of a key, as that field says.
    fn travels(&self, hole: &Hole) -> Option<(&'a Type, Wire)> {
        let part = |entity: &str, name: &str| {
            self.catalog.entity(entity)?.fields.get(name).map(|field| (&field.kind, field.wire))
        };
        match (self.capability.params.get(&hole.param), &hole.part) {
            (Some(param), None) => Some((&param.kind, param.wire)),
            (Some(param), Some(name)) => match &param.kind {
                Type::Ref(entity) => part(entity, name),
                _ => None,
            },
            (None, _) => part(&self.capability.entity, &hole.param),
        }
    }

    fn param(&self, hole: &Hole) -> Option<&'a Param> {
        self.capability.params.get(&hole.param).filter(|_| hole.part.is_none())
    }

    /// A list that travels as one text can be told apart again: no value of it holds the separator.
    fn separable(&self) -> Result<(), BindError> {
        let Transport::Http(http) = &self.capability.transport else { return Ok(()) };
        let templates = http.query.iter().chain(&http.headers).map(|(_, template)| template);
        for hole in templates.chain([&http.path]).flat_map(Template::holes) {
            let Some(param) = self.param(hole) else { continue };
            let separator = match param.list {
                ListStyle::Comma => ',',
                ListStyle::Space => ' ',
                ListStyle::Repeat | ListStyle::Brackets => continue,
            };
            if let Some(value) = self.wire(hole)
                && let Value::Array(items) = value.as_ref()
                && items.iter().any(|item| plain_text(item).contains(separator))
            {
                let (capability, param) = (self.capability.name.clone(), param.name.clone());
                return Err(BindError::Separator { capability, param, separator });
            }
        }
        Ok(())
    }

    /// A value between quotes of a language that the API reads must not be able to end them.
    fn quotable(&self) -> Result<(), BindError> {
        for hole in self.capability.transport.texts().into_iter().flat_map(Template::quoted) {
            let breaks = |c: char| matches!(c, '"' | '\'' | '\\') || c.is_control();
            if self.text(hole).is_some_and(|text| text.contains(breaks)) {
                let (capability, param) = (self.capability.name.clone(), hole.param.clone());
                return Err(BindError::Quoted { capability, param });
            }
        }
        Ok(())
    }

    fn text(&self, hole: &Hole) -> Option<Cow<'a, str>> {
        let separator = match self.param(hole).map(|p| p.list) {
            Some(ListStyle::Space) => " ",
            _ => ",",
        };
        Some(match self.wire(hole)? {
            Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Cow::Owned(Value::String(text)) => Cow::Owned(text),
            other => match other.as_ref() {
                Value::Array(items) => Cow::Owned(items.iter().map(plain_text).collect::<Vec<_>>().join(separator)),
                other => Cow::Owned(plain_text(other)),
            },
        })
    }

    fn path(&self, base: &str, path: &Template) -> Result<String, BindError> {
        for hole in path.holes() {
            let (capability, param) = (self.capability.name.clone(), hole.param.clone());
            match self.text(hole) {
                None => return Err(BindError::Missing { capability, param }),
                Some(text) if !hole.is_safe(&text) => {
                    return Err(BindError::Unsafe { capability, param });
                }
                Some(_) => {}
            }
        }
        let mut out = base.to_owned();
        path.fill_path(|hole| self.text(hole), &mut out);
        Ok(out)
    }

    /// One pair, or one for each value where the parameter's list travels so.
    fn query_pairs(&self, name: &str, template: &Template, query: &mut Vec<(String, String)>) {
        let alone = template.only_hole().and_then(|hole| Some((hole, self.param(hole)?.list)));
        if let Some((hole, style @ (ListStyle::Repeat | ListStyle::Brackets))) = alone
            && let Some(value) = self.wire(hole)
            && let Value::Array(items) = value.as_ref()
        {
            let name = if style == ListStyle::Brackets { format!("{name}[]") } else { name.to_owned() };
            query.extend(items.iter().map(|item| (name.clone(), plain_text(item))));
        } else if let Some(text) = template.fill_text(|hole| self.text(hole)) {
            query.push((name.to_owned(), text));
        }
    }

    fn headers(&self, templates: &[(String, Template)]) -> Result<Vec<(String, String)>, BindError> {
        let mut headers = Vec::with_capacity(templates.len() + 2);
        for (name, template) in templates {
            let Some(text) = template.fill_text(|hole| self.text(hole)) else { continue };
            // White space at the ends is not part of a value to whoever reads it.
            if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) || text.trim() != text {
                let param = template.holes().next().map(|h| h.param.clone()).unwrap_or_default();
                return Err(BindError::NotAHeader { capability: self.capability.name.clone(), param });
            }
            headers.push((name.clone(), text));
        }
        Ok(headers)
    }
}

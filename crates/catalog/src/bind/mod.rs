//! Binding: makes the request for a call, by filling the holes of the capability's mapping with the arguments.
//! Invariant: the request has the catalog's origin. A value is encoded for its place and never interpreted as syntax.

mod body;
mod graphql;

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::{Method, Request};
use serde_json::Value;

use crate::model::{Capability, Catalog, Http, Idempotency, ListStyle, Param, Transport};
use crate::paging::{PageParamLocation, PagePosition, PageRequest};
use crate::template::{Hole, Template};
use crate::types::{Type, Wire, plain_text};

/// The checked arguments of a call: names of parameters and of parts of the key, with their values. `null` means that
/// there is no value, except for a parameter for which [`Capability::accepts_null`] is true: there `null` clears the
/// value in the API.
pub type Args = BTreeMap<String, Value>;

/// The arguments and options of one call.
#[derive(Debug, Clone, Copy)]
pub struct BindInput<'a> {
    pub args: &'a Args,
    /// The page to request, if the capability has pages.
    pub page: Option<&'a PageRequest>,
    /// The names of the needed fields, or `None` for all fields. Only a GraphQL request selects fields.
    pub fields: Option<&'a [String]>,
    /// The key by which the API recognises a repetition of this write.
    pub idempotency_key: Option<&'a str>,
}

/// Why no request can be made for a call. Each variant names the argument that the caller must change.
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

impl<'a> BindInput<'a> {
    /// Returns a call with these arguments, without a page, selected fields or an idempotency key.
    pub fn new(args: &'a Args) -> Self {
        Self { args, page: None, fields: None, idempotency_key: None }
    }
}

/// Makes the request for a call. An argument that could change the structure of the request is refused.
pub fn bind(catalog: &Catalog, capability: &Capability, input: &BindInput<'_>) -> Result<Request, BindError> {
    let values = CallValues { catalog, capability, args: input.args };
    values.check_separators()?;
    values.check_quotes()?;
    let mut request = match &capability.transport {
        Transport::Http(http) => bind_http(catalog, &values, http, input)?,
        Transport::Graphql(graphql) => Request {
            method: Method::Post,
            origin: catalog.origin.clone(),
            path: format!("{}{}", catalog.base_path, graphql.path),
            query: Vec::new(),
            headers: Vec::new(),
            body: Some(graphql::make_body(catalog, &values, graphql, input)),
            auth: None,
            anonymous: false,
        },
    };
    request.headers.extend(catalog.headers.iter().cloned());
    request.auth.clone_from(&catalog.auth);
    request.anonymous = catalog.anonymous;
    let idempotency = capability.effect.as_ref().and_then(|effect| effect.idempotency.as_ref());
    if let (Some(key), Some(idempotency)) = (input.idempotency_key, idempotency) {
        match idempotency {
            Idempotency::Header(name) => request.headers.push((name.clone(), key.to_owned())),
            Idempotency::Query(name) => request.query.push((name.clone(), key.to_owned())),
            Idempotency::Body(path) => match &capability.transport {
                Transport::Http(_) => body::put_at_path(&mut request.body, path, Value::from(key)),
                Transport::Graphql(_) => {
                    body::put_at_path(&mut request.body, &format!("variables.{path}"), Value::from(key))
                }
            },
            Idempotency::Natural => {}
        }
    }
    Ok(request)
}

fn bind_http(
    catalog: &Catalog,
    values: &CallValues<'_>,
    http: &Http,
    input: &BindInput<'_>,
) -> Result<Request, BindError> {
    let mut query: Vec<(String, String)> = Vec::with_capacity(http.query.len() + 2);
    for (name, template) in &http.query {
        values.push_query_pairs(name, template, &mut query);
    }
    let mut path = values.fill_path(&catalog.base_path, &http.path)?;
    let mut body = http.body.as_ref().and_then(|body| body::fill(values, body));
    if let (Some(paging), Some(page)) = (&values.capability.paging, input.page) {
        match &page.at {
            // The address that the API sent for this page contains every parameter already.
            PagePosition::Address { path: page_path, query: page_query } => {
                path.clone_from(page_path);
                query.clone_from(page_query);
            }
            _ => {
                for (name, value) in paging.page_params(page) {
                    match paging.location {
                        PageParamLocation::Query => query.push((name.to_owned(), plain_text(&value))),
                        PageParamLocation::Body | PageParamLocation::Variable => {
                            body::put_at_path(&mut body, name, value)
                        }
                    }
                }
            }
        }
    }
    let headers = values.fill_headers(&http.headers)?;
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

/// The arguments of one call with their declarations, from which the value of each hole is looked up.
pub(crate) struct CallValues<'a> {
    catalog: &'a Catalog,
    capability: &'a Capability,
    args: &'a Args,
}

impl<'a> CallValues<'a> {
    /// Returns the value of a hole in the form that the API takes. Returns `None` if the argument is missing or
    /// `null`.
    fn wire_value(&self, hole: &Hole) -> Option<Cow<'a, Value>> {
        let value = self.args.get(&hole.param)?;
        let value = match (&hole.part, value) {
            (None, value) => value,
            (Some(part), Value::Object(parts)) => parts.get(part)?,
            // A reference whose key has one part is a scalar, which is the value of that part.
            (Some(_), scalar) => scalar,
        };
        if value.is_null() {
            return None;
        }
        Some(match self.wire_type(hole) {
            Some((kind, wire)) => kind.to_wire(wire, value),
            None => Cow::Borrowed(value),
        })
    }

    /// Returns whether the argument of this hole is a `null` that clears the value in the API.
    fn is_cleared(&self, hole: &Hole) -> bool {
        hole.part.is_none()
            && self.args.get(&hole.param).is_some_and(Value::is_null)
            && self.capability.accepts_null(&hole.param)
    }

    /// Returns the type and the wire form of a hole's value. For a part of a key these are the type and the wire form
    /// of the key's field.
    fn wire_type(&self, hole: &Hole) -> Option<(&'a Type, Wire)> {
        let field = |entity: &str, name: &str| {
            self.catalog.entity(entity)?.fields.get(name).map(|field| (&field.kind, field.wire))
        };
        match (self.capability.params.get(&hole.param), &hole.part) {
            (Some(param), None) => Some((&param.kind, param.wire)),
            (Some(param), Some(part)) => match &param.kind {
                Type::Ref(entity) => field(entity, part),
                _ => None,
            },
            (None, _) => field(&self.capability.entity, &hole.param),
        }
    }

    fn param(&self, hole: &Hole) -> Option<&'a Param> {
        self.capability.params.get(&hole.param).filter(|_| hole.part.is_none())
    }

    /// Refuses a list that is sent as one text if an item contains the separator, because the API would read this
    /// item as two.
    fn check_separators(&self) -> Result<(), BindError> {
        let Transport::Http(http) = &self.capability.transport else { return Ok(()) };
        let templates = http.query.iter().chain(&http.headers).map(|(_, template)| template);
        for hole in templates.chain([&http.path]).flat_map(Template::holes) {
            let Some(param) = self.param(hole) else { continue };
            let separator = match param.list {
                ListStyle::Comma => ',',
                ListStyle::Space => ' ',
                ListStyle::Repeat | ListStyle::Brackets => continue,
            };
            if let Some(value) = self.wire_value(hole)
                && let Value::Array(items) = value.as_ref()
                && items.iter().any(|item| plain_text(item).contains(separator))
            {
                let capability = self.capability.name.clone();
                return Err(BindError::Separator { capability, param: param.name.clone(), separator });
            }
        }
        Ok(())
    }

    /// Refuses a value that could end the quotes around its hole. Such a hole is in a text of a query language of the
    /// API. The escape rules of this language are unknown, so the value cannot be escaped.
    fn check_quotes(&self) -> Result<(), BindError> {
        for hole in self.capability.transport.text_templates().into_iter().flat_map(Template::holes_between_quotes) {
            let could_end_quotes = |c: char| matches!(c, '"' | '\'' | '\\') || c.is_control();
            if self.text_value(hole).is_some_and(|text| text.contains(could_end_quotes)) {
                return Err(BindError::Quoted { capability: self.capability.name.clone(), param: hole.param.clone() });
            }
        }
        Ok(())
    }

    /// Returns the value of a hole as text. The items of a list are joined by the separator of the parameter.
    fn text_value(&self, hole: &Hole) -> Option<Cow<'a, str>> {
        let separator = match self.param(hole).map(|p| p.list) {
            Some(ListStyle::Space) => " ",
            _ => ",",
        };
        Some(match self.wire_value(hole)? {
            Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Cow::Owned(Value::String(text)) => Cow::Owned(text),
            other => match other.as_ref() {
                Value::Array(items) => Cow::Owned(items.iter().map(plain_text).collect::<Vec<_>>().join(separator)),
                other => Cow::Owned(plain_text(other)),
            },
        })
    }

    fn fill_path(&self, base_path: &str, template: &Template) -> Result<String, BindError> {
        for hole in template.holes() {
            let capability = || self.capability.name.clone();
            match self.text_value(hole) {
                None => return Err(BindError::Missing { capability: capability(), param: hole.param.clone() }),
                Some(text) if !hole.is_safe(&text) => {
                    return Err(BindError::Unsafe { capability: capability(), param: hole.param.clone() });
                }
                Some(_) => {}
            }
        }
        let mut path = base_path.to_owned();
        template.fill_path(|hole| self.text_value(hole), &mut path);
        Ok(path)
    }

    /// Appends the query pair of a template. A list in the style `Repeat` or `Brackets` becomes one pair for each
    /// item. A template whose hole has no value adds no pair.
    fn push_query_pairs(&self, name: &str, template: &Template, query: &mut Vec<(String, String)>) {
        let lone_param = template.only_hole().and_then(|hole| Some((hole, self.param(hole)?.list)));
        if let Some((hole, style @ (ListStyle::Repeat | ListStyle::Brackets))) = lone_param
            && let Some(value) = self.wire_value(hole)
            && let Value::Array(items) = value.as_ref()
        {
            let name = if style == ListStyle::Brackets { format!("{name}[]") } else { name.to_owned() };
            query.extend(items.iter().map(|item| (name.clone(), plain_text(item))));
        } else if let Some(text) = template.fill_text(|hole| self.text_value(hole)) {
            query.push((name.to_owned(), text));
        }
    }

    fn fill_headers(&self, templates: &[(String, Template)]) -> Result<Vec<(String, String)>, BindError> {
        let mut headers = Vec::with_capacity(templates.len() + 2);
        for (name, template) in templates {
            let Some(text) = template.fill_text(|hole| self.text_value(hole)) else { continue };
            // A receiver strips white space at both ends of a header value, so a value with such white space would
            // arrive changed.
            if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) || text.trim() != text {
                let param = template.holes().next().map(|h| h.param.clone()).unwrap_or_default();
                return Err(BindError::NotAHeader { capability: self.capability.name.clone(), param });
            }
            headers.push((name.clone(), text));
        }
        Ok(headers)
    }
}

//! Resolves the paging of a capability: one of the known forms, with the parameters of a page.
//! Invariants: the paging has the keys that its form needs and no key of another form. The parameters of a page have
//! names that no other part of the request uses.

use base::Method;

use super::capability::WrittenCapability;
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Body, Transport, ValueTemplate};
use crate::paging::{PageParamLocation, PageSize, Paging, PagingForm};
use crate::path::DataPath;
use crate::read::raw::{self, PagingPlace};
use crate::read::spans::YamlTarget;

/// The YAML of each form, in the order of the keys.
const PAGING_FORMS: [&str; 7] = [
    "{page: PARAM, from: 1}",
    "{offset: PARAM}",
    "{cursor: PATH, send: PARAM}",
    "{link: next}",
    "{next: PATH}",
    "{last: FIELD, send: PARAM, more: PATH}",
    "{connection: PATH}",
];

impl CatalogResolver<'_> {
    /// Resolves the paging of a capability. Returns `None` after a mistake that makes the form unclear.
    pub(super) fn resolve_paging(
        &mut self,
        written: &WrittenCapability<'_>,
        raw: &raw::Paging,
        transport: &Transport,
    ) -> Option<Paging> {
        let at = written.at.key("paging");
        if !written.kind.is_list() {
            let message = format!("`{}` reads one row; only a `query` or a `search` has pages", written.name);
            return self.refuse_paging(at.on_key(), message);
        }
        let form = match read_form(raw) {
            Ok(form) => form,
            Err(FormMistake { key, message, show_forms }) => {
                let target = key.map_or_else(|| at.on_key(), |key| at.key(key).on_key());
                let forms = show_forms.then_some(PAGING_FORMS).into_iter().flatten().map(str::to_owned);
                let message = format!("`{}`: {message}", written.name);
                self.report(Mistake::new(codes::PAGING, target, message).with_alternatives(forms));
                return None;
            }
        };
        let is_graphql = matches!(transport, Transport::Graphql(_));
        let mistake = match (&form, &raw.size) {
            (_, Some(size)) if size.max == 0 => {
                Some((at.key("size").key("max").on_value(), "a page has at least one row; write `max: 100`".to_owned()))
            }
            (PagingForm::Last { field, .. }, _) if !written.entity.fields.contains_key(field) => {
                Some((at.key("last").on_value(), format!("`{field}` is not a field of {}", written.entity.name)))
            }
            (PagingForm::Link | PagingForm::Next { .. }, _) if is_graphql => {
                Some((at.on_key(), "GraphQL has no next address; write `{connection: PATH}`".to_owned()))
            }
            _ if raw.connection.is_some() && !is_graphql => {
                Some((at.key("connection").on_key(), "only GraphQL has connections".to_owned()))
            }
            _ if is_graphql && raw.place.is_some() => {
                Some((at.key("in").on_key(), "GraphQL asks for a page in its variables; take `in` out".to_owned()))
            }
            _ => None,
        };
        if let Some((target, message)) = mistake {
            return self.refuse_paging(target, format!("`{}`: {message}", written.name));
        }
        let location = match raw.place {
            _ if is_graphql => PageParamLocation::Variable,
            Some(PagingPlace::Body) => PageParamLocation::Body,
            Some(PagingPlace::Query) | None => PageParamLocation::Query,
        };
        self.check_page_params(written, raw, &form, location, transport);
        let path = |resolver: &mut Self, key: &str, text: &Option<String>| {
            text.as_ref().map(|text| resolver.parse_data_path(&at.key(key), text))
        };
        // The value `form` contains these paths already. They are parsed here only to report mistakes in them.
        for (key, text) in [("cursor", &raw.cursor), ("next", &raw.next), ("connection", &raw.connection)] {
            path(self, key, text);
        }
        let total = path(self, "total", &raw.total);
        let connection_flag = || raw.connection.as_ref().map(|c| DataPath::from(format!("{c}.pageInfo.hasNextPage")));
        let more = path(self, "more", &raw.more).or_else(connection_flag);
        let size = raw.size.as_ref().map(|s| PageSize { send: s.send.clone(), max: s.max });
        Some(Paging { form, size, total, more, location })
    }

    fn refuse_paging(&mut self, target: YamlTarget, message: String) -> Option<Paging> {
        self.report(Mistake::new(codes::PAGING, target, message));
        None
    }

    /// Reports page parameters with an invalid name, with a name that the request uses already, or without a place in
    /// the request.
    fn check_page_params(
        &mut self,
        written: &WrittenCapability<'_>,
        raw: &raw::Paging,
        form: &PagingForm,
        location: PageParamLocation,
        transport: &Transport,
    ) {
        let at = written.at.key("paging");
        let position_param = match form {
            PagingForm::Page { send, .. } => Some(("page", send.as_str())),
            PagingForm::Offset { send } => Some(("offset", send.as_str())),
            PagingForm::Cursor { send, .. } | PagingForm::Last { send, .. } => Some(("send", send.as_str())),
            PagingForm::Link | PagingForm::Next { .. } => None,
        };
        let position_name = position_param.map(|(_, name)| name);
        let size_name = raw.size.as_ref().map(|size| size.send.as_str());
        let used_names = collect_used_names(transport, location);
        let mut mistakes: Vec<(YamlTarget, String)> = Vec::new();
        let position = position_param.map(|(key, name)| (at.key(key).on_value(), name));
        let size = size_name.map(|name| (at.key("size").key("send").on_value(), name));
        for (target, name) in position.into_iter().chain(size) {
            if name.is_empty() || name.chars().any(|c| c.is_control() || " &=#?{}".contains(c)) {
                mistakes.push((target, format!("`{}` is not the name of a parameter", name.escape_debug())));
            } else if used_names.contains(&name) {
                mistakes.push((target, format!("`{name}` is sent by the mapping already; take it out there")));
            }
        }
        if position_name.is_some() && position_name == size_name {
            mistakes.push((at.key("size").on_key(), "the page and its size need a parameter each".to_owned()));
        }
        if location == PageParamLocation::Body && !has_body_for_params(transport) {
            let message = "`in: body` needs a `POST` whose body is JSON, a form or parts".to_owned();
            mistakes.push((at.key("in").on_key(), message));
        }
        for (target, message) in mistakes {
            self.report(Mistake::new(codes::PAGING, target, format!("`{}`: {message}", written.name)));
        }
    }
}

/// Returns the names that the mapping uses in this part of the request.
fn collect_used_names(transport: &Transport, location: PageParamLocation) -> Vec<&str> {
    match (transport, location) {
        (Transport::Http(http), PageParamLocation::Query) => http.query.iter().map(|(name, _)| name.as_str()).collect(),
        (Transport::Http(http), _) => match &http.body {
            Some(Body::Json { shape: ValueTemplate::Object(parts), .. } | Body::Form(ValueTemplate::Object(parts))) => {
                parts.keys().map(String::as_str).collect()
            }
            Some(Body::Multipart(parts)) => parts.iter().map(|p| p.name.as_str()).collect(),
            _ => Vec::new(),
        },
        (Transport::Graphql(graphql), _) => graphql.variables.keys().map(String::as_str).collect(),
    }
}

/// Returns whether the request has a body to which named parameters can be added.
fn has_body_for_params(transport: &Transport) -> bool {
    match transport {
        Transport::Http(http) => {
            let has_names = match &http.body {
                Some(Body::Json { shape, .. } | Body::Form(shape)) => matches!(shape, ValueTemplate::Object(_)),
                Some(Body::Raw { .. }) => false,
                Some(Body::Multipart(_)) | None => true,
            };
            http.method == Method::Post && has_names
        }
        Transport::Graphql(_) => false,
    }
}

/// A mistake because of which the form of a paging is not clear.
struct FormMistake {
    /// The key with the mistake, or `None` for the paging as a whole.
    key: Option<&'static str>,
    message: String,
    /// Whether the diagnostic lists all forms.
    show_forms: bool,
}

/// Returns the form whose key the author wrote. It is a mistake if a key that the form needs is missing, or if there
/// is a key of another form.
fn read_form(raw: &raw::Paging) -> Result<PagingForm, FormMistake> {
    let raw::Paging { page, offset, cursor, link, next, last, connection, send, from, .. } = raw;
    let form_keys = [
        ("page", page.is_some()),
        ("offset", offset.is_some()),
        ("cursor", cursor.is_some()),
        ("link", link.is_some()),
        ("next", next.is_some()),
        ("last", last.is_some()),
        ("connection", connection.is_some()),
    ];
    let given: Vec<&'static str> =
        form_keys.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect();
    let mistake = |key, message: String| Err(FormMistake { key: Some(key), message, show_forms: false });
    match given.as_slice() {
        [one, two, ..] => {
            return mistake(two, format!("`{one}` and `{two}` are two forms of paging; write one of them"));
        }
        [_] if from.is_some() && page.is_none() => {
            return mistake("from", "`from` is the number of the first page; it goes with `page`".to_owned());
        }
        _ => {}
    }
    let without_send = |form: PagingForm| match send {
        None => Ok(form),
        Some(_) => mistake("send", "`send` belongs to `cursor`, `last` and `connection`".to_owned()),
    };
    if let Some(param) = page {
        return without_send(PagingForm::Page { send: param.clone(), from: from.unwrap_or(1) });
    }
    if let Some(param) = offset {
        return without_send(PagingForm::Offset { send: param.clone() });
    }
    if let Some(read) = cursor {
        return match send {
            Some(send) => Ok(PagingForm::Cursor { read: DataPath::from(read.clone()), send: send.clone() }),
            None => mistake("cursor", "`send: PARAM` says which parameter takes the cursor".to_owned()),
        };
    }
    if link.is_some() {
        return without_send(PagingForm::Link);
    }
    if let Some(read) = next {
        return without_send(PagingForm::Next { read: DataPath::from(read.clone()) });
    }
    if let Some(field) = last {
        return match send {
            Some(send) => Ok(PagingForm::Last { field: field.clone(), send: send.clone() }),
            None => mistake("last", "`send: PARAM` says which parameter takes the field".to_owned()),
        };
    }
    if let Some(connection) = connection {
        return Ok(PagingForm::Cursor {
            read: DataPath::from(format!("{connection}.pageInfo.endCursor")),
            send: send.clone().unwrap_or_else(|| "after".to_owned()),
        });
    }
    Err(FormMistake { key: None, message: "this paging is none of the forms".to_owned(), show_forms: true })
}

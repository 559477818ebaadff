//! Paging: which of the forms it is.
//! Invariant: a form has what it needs and nothing that another form needs; what asks for a page is asked for by nothing else.

use base::Method;

use super::capability::Written;
use super::{Cx, Mistake};
use crate::codes;
use crate::model::{Body, Shape, Transport};
use crate::paging::{PageSize, Paging, PagingForm, Place};
use crate::path::DataPath;
use crate::read::places::Spot;
use crate::read::raw::{self, PagingPlace};

const FORMS: [&str; 7] = [
    "{page: PARAM, from: 1}",
    "{offset: PARAM}",
    "{cursor: PATH, send: PARAM}",
    "{link: next}",
    "{next: PATH}",
    "{last: FIELD, send: PARAM, more: PATH}",
    "{connection: PATH}",
];

impl Cx<'_> {
    pub(super) fn paging(&mut self, of: &Written<'_>, raw: &raw::Paging, transport: &Transport) -> Option<Paging> {
        let at = of.at.key("paging");
        if !of.kind.is_list() {
            let message = format!("`{}` reads one row; only a `query` or a `search` has pages", of.name);
            return self.unpaged(at.here(), message);
        }
        let form = match form(raw) {
            Ok(form) => form,
            Err(Unformed { key, message, forms }) => {
                let spot = key.map_or_else(|| at.here(), |key| at.key(key).here());
                let forms = forms.then_some(FORMS).into_iter().flatten().map(str::to_owned);
                self.report(Mistake::new(codes::PAGING, spot, format!("`{}`: {message}", of.name)).any_of(forms));
                return None;
            }
        };
        let graphql = matches!(transport, Transport::Graphql(_));
        let wrong = match (&form, &raw.size) {
            (_, Some(size)) if size.max == 0 => {
                Some((at.key("size").key("max").value(), "a page has at least one row; write `max: 100`".to_owned()))
            }
            (PagingForm::Last { field, .. }, _) if !of.target.fields.contains_key(field) => {
                Some((at.key("last").value(), format!("`{field}` is not a field of {}", of.target.name)))
            }
            (PagingForm::Link | PagingForm::Next { .. }, _) if graphql => {
                Some((at.here(), "GraphQL has no next address; write `{connection: PATH}`".to_owned()))
            }
            _ if raw.connection.is_some() && !graphql => {
                Some((at.key("connection").here(), "only GraphQL has connections".to_owned()))
            }
            _ if graphql && raw.place.is_some() => {
                Some((at.key("in").here(), "GraphQL asks for a page in its variables; take `in` out".to_owned()))
            }
            _ => None,
        };
        if let Some((spot, message)) = wrong {
            return self.unpaged(spot, format!("`{}`: {message}", of.name));
        }
        let place = match raw.place {
            _ if graphql => Place::Variable,
            Some(PagingPlace::Body) => Place::Body,
            Some(PagingPlace::Query) | None => Place::Query,
        };
        self.sent(of, raw, &form, (place, transport));
        let path = |cx: &mut Self, key: &str, text: &Option<String>| {
            text.as_ref().map(|text| cx.data_path(&at.key(key), text))
        };
        for (key, text) in [("cursor", &raw.cursor), ("next", &raw.next), ("connection", &raw.connection)] {
            path(self, key, text);
        }
        let total = path(self, "total", &raw.total);
        let flag = || raw.connection.as_ref().map(|c| DataPath::from(format!("{c}.pageInfo.hasNextPage")));
        let more = path(self, "more", &raw.more).or_else(flag);
        let size = raw.size.as_ref().map(|s| PageSize { send: s.send.clone(), max: s.max });
        Some(Paging { form, size, total, more, place })
    }

    fn unpaged(&mut self, spot: Spot, message: String) -> Option<Paging> {
        self.report(Mistake::new(codes::PAGING, spot, message));
        None
    }

    /// What asks for a page has a name, a place that can carry it, and that name for itself.
    fn sent(
        &mut self,
        of: &Written<'_>,
        raw: &raw::Paging,
        form: &PagingForm,
        (place, transport): (Place, &Transport),
    ) {
        let at = of.at.key("paging");
        let key = match form {
            PagingForm::Page { .. } => "page",
            PagingForm::Offset { .. } => "offset",
            PagingForm::Cursor { .. } | PagingForm::Last { .. } => "send",
            PagingForm::Link | PagingForm::Next { .. } => "",
        };
        let asked = match form {
            PagingForm::Page { send, .. }
            | PagingForm::Offset { send }
            | PagingForm::Cursor { send, .. }
            | PagingForm::Last { send, .. } => Some(send.as_str()),
            PagingForm::Link | PagingForm::Next { .. } => None,
        };
        let size = raw.size.as_ref().map(|size| size.send.as_str());
        let taken = taken(transport, place);
        let mut wrong: Vec<(Spot, String)> = Vec::new();
        for (spot, name) in asked
            .map(|name| (at.key(key).value(), name))
            .into_iter()
            .chain(size.map(|name| (at.key("size").key("send").value(), name)))
        {
            if name.is_empty() || name.chars().any(|c| c.is_control() || " &=#?{}".contains(c)) {
                wrong.push((spot, format!("`{}` is not the name of a parameter", name.escape_debug())));
            } else if taken.contains(&name) {
                wrong.push((spot, format!("`{name}` is sent by the mapping already; take it out there")));
            }
        }
        if asked.is_some() && asked == size {
            wrong.push((at.key("size").here(), "the page and its size need a parameter each".to_owned()));
        }
        if place == Place::Body && !carries(transport) {
            let message = "`in: body` needs a `POST` whose body is JSON, a form or parts".to_owned();
            wrong.push((at.key("in").here(), message));
        }
        for (spot, message) in wrong {
            self.report(Mistake::new(codes::PAGING, spot, format!("`{}`: {message}", of.name)));
        }
    }
}

/// Names that the mapping itself sends in that place.
fn taken(transport: &Transport, place: Place) -> Vec<&str> {
    match (transport, place) {
        (Transport::Http(http), Place::Query) => http.query.iter().map(|(name, _)| name.as_str()).collect(),
        (Transport::Http(http), _) => match &http.body {
            Some(Body::Json { shape: Shape::Object(parts), .. } | Body::Form(Shape::Object(parts))) => {
                parts.keys().map(String::as_str).collect()
            }
            Some(Body::Multipart(parts)) => parts.iter().map(|p| p.name.as_str()).collect(),
            _ => Vec::new(),
        },
        (Transport::Graphql(graphql), _) => graphql.variables.keys().map(String::as_str).collect(),
    }
}

fn carries(transport: &Transport) -> bool {
    match transport {
        Transport::Http(http) => {
            let map = match &http.body {
                Some(Body::Json { shape, .. } | Body::Form(shape)) => matches!(shape, Shape::Object(_)),
                Some(Body::Raw { .. }) => false,
                Some(Body::Multipart(_)) | None => true,
            };
            http.method == Method::Post && map
        }
        Transport::Graphql(_) => false,
    }
}

/// Why a paging is none of the forms, and at which of its keys that shows.
struct Unformed {
    key: Option<&'static str>,
    message: String,
    forms: bool,
}

/// Exactly one form is named, with what belongs to it.
fn form(raw: &raw::Paging) -> Result<PagingForm, Unformed> {
    let raw::Paging { page, offset, cursor, link, next, last, connection, send, from, .. } = raw;
    let named = [
        ("page", page.is_some()),
        ("offset", offset.is_some()),
        ("cursor", cursor.is_some()),
        ("link", link.is_some()),
        ("next", next.is_some()),
        ("last", last.is_some()),
        ("connection", connection.is_some()),
    ];
    let named: Vec<&'static str> = named.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
    let wrong = |key, message: String| Err(Unformed { key: Some(key), message, forms: false });
    match named.as_slice() {
        [] => {
            let message = "this paging is none of the forms".to_owned();
            return Err(Unformed { key: None, message, forms: true });
        }
        [one, two, ..] => return wrong(two, format!("`{one}` and `{two}` are two forms of paging; write one of them")),
        [_] => {}
    }
    if from.is_some() && page.is_none() {
        return wrong("from", "`from` is the number of the first page; it goes with `page`".to_owned());
    }
    let path = |text: &String| DataPath::from(text.clone());
    let stray = "`send` belongs to `cursor`, `last` and `connection`".to_owned();
    Ok(match (page, offset, cursor, link, next, last, connection, send) {
        (Some(send), .., None) => PagingForm::Page { send: send.clone(), from: from.unwrap_or(1) },
        (_, Some(send), .., None) => PagingForm::Offset { send: send.clone() },
        (_, _, Some(read), .., Some(send)) => PagingForm::Cursor { read: path(read), send: send.clone() },
        (_, _, Some(_), .., None) => {
            return wrong("cursor", "`send: PARAM` says which parameter takes the cursor".to_owned());
        }
        (_, _, _, Some(_), .., None) => PagingForm::Link,
        (_, _, _, _, Some(read), .., None) => PagingForm::Next { read: path(read) },
        (.., Some(field), _, Some(send)) => PagingForm::Last { field: field.clone(), send: send.clone() },
        (.., Some(_), _, None) => {
            return wrong("last", "`send: PARAM` says which parameter takes the field".to_owned());
        }
        (.., Some(connection), send) => PagingForm::Cursor {
            read: DataPath::from(format!("{connection}.pageInfo.endCursor")),
            send: send.clone().unwrap_or_else(|| "after".to_owned()),
        },
        _ => return wrong("send", stray),
    })
}

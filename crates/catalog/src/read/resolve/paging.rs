//! Paging: which of the forms it is.
//! Invariant: a form has what it needs and nothing that another form needs.

use base::Diagnostic;

use super::Cx;
use crate::codes;
use crate::model::{Entity, Kind, Transport};
use crate::paging::{PageSize, Paging, PagingForm, Place};
use crate::path::DataPath;
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
    pub(super) fn paging(
        &mut self,
        (name, kind): (&str, Kind),
        raw: &raw::Paging,
        transport: &Transport,
        entity: &Entity,
    ) -> Option<Paging> {
        let wrong = |message: String| Diagnostic::error(codes::PAGING, self.place_of_word(name), message);
        if !kind.is_list() {
            self.report(wrong(format!("`{name}` reads one row; only a `query` or a `search` has pages")));
            return None;
        }
        let Some(form) = form(raw) else {
            let forms = FORMS.map(str::to_owned);
            self.report(wrong(format!("`{name}`: this paging is none of the forms")).with_alternatives(forms));
            return None;
        };
        let graphql = matches!(transport, Transport::Graphql(_));
        let mistake = match (&form, &raw.size) {
            (_, Some(size)) if size.max == 0 => Some("a page has at least one row; write `max: 100`".to_owned()),
            (PagingForm::Last { field, .. }, _) if !entity.fields.contains_key(field) => {
                Some(format!("`{field}` is not a field of {}", entity.name))
            }
            (PagingForm::Link | PagingForm::Next { .. }, _) if graphql => {
                Some("GraphQL has no next address; write `{connection: PATH}`".to_owned())
            }
            (_, _) if raw.connection.is_some() && !graphql => Some("only GraphQL has connections".to_owned()),
            _ => None,
        };
        if let Some(mistake) = mistake {
            self.report(wrong(format!("`{name}`: {mistake}")));
            return None;
        }
        let place = match raw.place {
            _ if graphql => Place::Variable,
            Some(PagingPlace::Body) => Place::Body,
            Some(PagingPlace::Query) | None => Place::Query,
        };
        let more = raw.more.clone().or_else(|| raw.connection.as_ref().map(|c| format!("{c}.pageInfo.hasNextPage")));
        let size = raw.size.as_ref().map(|s| PageSize { send: s.send.clone(), max: s.max });
        Some(Paging { form, size, total: raw.total.clone().map(DataPath::from), more: more.map(DataPath::from), place })
    }
}

/// Exactly one form is named, with what belongs to it.
fn form(raw: &raw::Paging) -> Option<PagingForm> {
    let raw::Paging { page, offset, cursor, link, next, last, connection, send, from, .. } = raw;
    let named =
        [page, offset, cursor, next, last, connection].into_iter().flatten().count() + usize::from(link.is_some());
    if named != 1 || (from.is_some() && page.is_none()) {
        return None;
    }
    let path = |text: &String| DataPath::from(text.clone());
    Some(match (page, offset, cursor, link, next, last, connection, send) {
        (Some(send), .., None) => PagingForm::Page { send: send.clone(), from: from.unwrap_or(1) },
        (_, Some(send), .., None) => PagingForm::Offset { send: send.clone() },
        (_, _, Some(read), .., Some(send)) => PagingForm::Cursor { read: path(read), send: send.clone() },
        (_, _, _, Some(_), .., None) => PagingForm::Link,
        (_, _, _, _, Some(read), .., None) => PagingForm::Next { read: path(read) },
        (.., Some(field), _, Some(send)) => PagingForm::Last { field: field.clone(), send: send.clone() },
        (.., Some(connection), send) => PagingForm::Cursor {
            read: DataPath::from(format!("{connection}.pageInfo.endCursor")),
            send: send.clone().unwrap_or_else(|| "after".to_owned()),
        },
        _ => return None,
    })
}

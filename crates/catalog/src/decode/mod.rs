//! An answer to rows: the fields of the capability's entity, by their paths, checked against their types.
//! Invariant: a row that comes out has every field of its entity, in order, `null` where the answer had none, and a whole key.

mod refusal;
mod row;

use std::borrow::Cow;

use base::Response;
use serde_json::{Map, Value};

use crate::bind::Args;
use crate::model::{Capability, Catalog, Row, RowForm, Rows, Transport};
use crate::paging::{After, Page, PageRequest, PagingError, PagingForm};
use crate::types::TypeError;

pub use refusal::Refusal;

#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    pub rows: Vec<Row>,
    /// Where the page leads; the end, where the capability has no pages.
    pub after: After,
}

/// Which page an answer is, and how many rows came before it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub page: &'a PageRequest,
    pub seen: usize,
}

/// An answer, and what it answers.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub response: &'a Response,
    /// What was asked: parts of the key that the answer leaves out are taken from here.
    pub args: &'a Args,
    pub asked: Option<Asked<'a>>,
    pub nesting: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is not JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("the answer is nested deeper than {0}")]
    TooDeep(usize),
    #[error("the answer has no rows at `{0}`")]
    NoRows(String),
    #[error("row {row}: {entity}.{field}: {cause}")]
    Field { row: usize, entity: String, field: String, cause: TypeError },
    #[error("row {row}: {entity} has no `{field}`, which is part of its key")]
    NoKey { row: usize, entity: String, field: String },
    #[error(transparent)]
    Paging(#[from] PagingError),
    #[error("the catalog has no entity `{0}`")]
    NoEntity(String),
    /// The API answered, and says that it did not do it.
    #[error(transparent)]
    Refused(Refusal),
}

pub fn decode(catalog: &Catalog, capability: &Capability, answer: &Answer<'_>) -> Result<Decoded, DecodeError> {
    let Answer { response, asked, nesting, .. } = *answer;
    let nothing = !capability.gives_rows();
    let silent = catalog.failure.is_none() && matches!(capability.transport, Transport::Http(_));
    if nothing && (silent || response.body.is_empty()) {
        return Ok(Decoded { rows: Vec::new(), after: After::End });
    }
    if base::depth_exceeds(&response.body, nesting) {
        return Err(DecodeError::TooDeep(nesting));
    }
    let mut body: Value = serde_json::from_slice(&response.body).map_err(DecodeError::NotJson)?;
    if let Some(refusal) = refusal::find(catalog, capability, &body) {
        return Err(DecodeError::Refused(refusal));
    }
    if nothing {
        return Ok(Decoded { rows: Vec::new(), after: After::End });
    }
    let entity =
        catalog.entity(&capability.returns).ok_or_else(|| DecodeError::NoEntity(capability.returns.clone()))?;
    let reader = row::Reader::new(catalog, entity, answer, capability.kind.is_list());
    let follows = |body: &Value, rows: usize, last: Option<&Row>| match (&capability.paging, asked) {
        (Some(paging), Some(asked)) => {
            let page = Page { response, body, rows, last };
            paging.after(&catalog.origin, asked.page, &page, asked.seen + rows)
        }
        _ => Ok(After::End),
    };
    if let Some(count) = movable(capability, &body) {
        // Before the rows are taken out of the answer: a place may be told inside them. A row that is wrong is told first.
        let after = follows(&body, count, None);
        let rows = take_items(&capability.rows, &mut body).into_iter().enumerate();
        let rows = rows.map(|(at, mut item)| reader.row(at, &mut item)).collect::<Result<_, _>>()?;
        return Ok(Decoded { rows, after: after? });
    }
    let rows: Vec<Row> = items(&capability.rows, &body)?
        .into_iter()
        .enumerate()
        .map(|(at, item)| reader.row(at, &mut item.into_owned()))
        .collect::<Result<_, _>>()?;
    let after = follows(&body, rows.len(), rows.last())?;
    Ok(Decoded { rows, after })
}

/// How many rows there are, where they can be moved out of the answer: copying them was a third of what decoding allocates
/// (docs/benchmarks.md). Not where the next page starts after the last of them.
fn movable(capability: &Capability, body: &Value) -> Option<usize> {
    let rows = &capability.rows;
    let [path] = rows.at.as_slice() else { return None };
    let by_last = capability.paging.as_ref().is_some_and(|p| matches!(p.form, PagingForm::Last { .. }));
    if by_last || rows.item.is_some() || !path.is_single() {
        return None;
    }
    match (&rows.form, path.find(body)?.as_ref()) {
        (RowForm::List, Value::Array(items)) => Some(items.len()),
        (RowForm::One, Value::Object(_)) => Some(1),
        _ => None,
    }
}

fn take_items(rows: &Rows, body: &mut Value) -> Vec<Value> {
    match rows.at.first().and_then(|path| path.take(body)) {
        Some(Value::Array(items)) if rows.form == RowForm::List => items,
        Some(one) => vec![one],
        None => Vec::new(),
    }
}

/// The items of an answer, each where its row is.
fn items<'b>(rows: &Rows, body: &'b Value) -> Result<Vec<Cow<'b, Value>>, DecodeError> {
    let places = || rows.at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    let lacking = || DecodeError::NoRows(places());
    let found = match rows.at.iter().find_map(|path| path.find(body).filter(|v| !v.is_null())) {
        Some(found) => found,
        None if rows.sparse && body.is_object() => return Ok(Vec::new()),
        None => return Err(lacking()),
    };
    let whole: Vec<Cow<'b, Value>> = match (&rows.form, found) {
        (RowForm::List, Cow::Borrowed(Value::Array(items))) => items.iter().map(Cow::Borrowed).collect(),
        (RowForm::List, Cow::Owned(Value::Array(items))) => items.into_iter().map(Cow::Owned).collect(),
        (RowForm::One, found) if found.is_object() => vec![found],
        (RowForm::Wrap(field), found) => match found.as_ref() {
            Value::Array(items) => items.iter().map(|item| Cow::Owned(wrapped(field, item.clone()))).collect(),
            _ => return Err(lacking()),
        },
        (RowForm::Entries(field), found) => match found.as_ref() {
            Value::Object(map) => map.iter().map(|(key, value)| Cow::Owned(entry(field, key, value))).collect(),
            _ => return Err(lacking()),
        },
        (RowForm::Columns, found) => columns(&found).ok_or_else(lacking)?,
        _ => return Err(lacking()),
    };
    let Some(inner) = &rows.item else { return Ok(whole) };
    // An item without a row in it (a deleted one, an edge to nothing) is no row.
    Ok(whole
        .into_iter()
        .filter_map(|item| match item {
            Cow::Borrowed(item) => inner.find(item),
            Cow::Owned(item) => inner.find(&item).map(|found| Cow::Owned(found.into_owned())),
        })
        .filter(|row| !row.is_null())
        .collect())
}

fn wrapped(field: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(field.to_owned(), value)]))
}

fn entry(field: &str, key: &str, value: &Value) -> Value {
    let mut map = match value {
        Value::Object(map) => map.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    map.insert(field.to_owned(), Value::String(key.to_owned()));
    Value::Object(map)
}

/// `{"time": [1, 2], "rain": [0, 3]}` as two rows; what is not an array of that length belongs to none.
fn columns<'b>(found: &Value) -> Option<Vec<Cow<'b, Value>>> {
    let map = found.as_object()?;
    let length = map.values().find_map(Value::as_array)?.len();
    let columns: Vec<(&String, &Vec<Value>)> = map
        .iter()
        .filter_map(|(name, column)| Some((name, column.as_array().filter(|c| c.len() == length)?)))
        .collect();
    let row = |at: usize| columns.iter().map(|(name, column)| ((*name).clone(), column[at].clone())).collect();
    Some((0..length).map(|at| Cow::Owned(Value::Object(row(at)))).collect())
}

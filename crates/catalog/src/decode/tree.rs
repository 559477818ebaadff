//! Rows from the whole answer as a tree, for shapes that cannot be read on the way: alternatives, columns, entries.
//! Invariant: rows are those that `direct` would read, where it can.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::row::Reader;
use super::{DecodeError, Raw, Window, refusal};
use crate::model::{Capability, Catalog, RowForm, Rows};
use crate::path::DataPath;

pub(super) fn read(catalog: &Catalog, capability: &Capability, reader: &Reader<'_>) -> Result<Raw, DecodeError> {
    let answer = reader.answer;
    let body: Value = serde_json::from_slice(&answer.response.body).map_err(DecodeError::NotJson)?;
    if let Some(refusal) = refusal::find(catalog, capability, &body) {
        return Err(DecodeError::Refused(refusal));
    }
    let window = answer.window;
    // An item may hold no row, so how many come before the window is known only when all are looked at.
    let looked = if capability.rows.item.is_some() { Window::ALL } else { window };
    let (mut came, mut items) = items(&capability.rows, &body, looked)?;
    if let Some(inner) = &capability.rows.item {
        items = inner_rows(inner, items);
        came = items.len();
        items = items.into_iter().skip(window.skip).take(window.take).collect();
    }
    let rows = items.into_iter().enumerate();
    let rows = rows.map(|(at, item)| reader.row(window.skip + at, &mut item.into_owned())).collect::<Result<_, _>>()?;
    Ok(Raw { rows, came, body })
}

/// How many items an answer has, and those in the window.
fn items<'b>(rows: &Rows, body: &'b Value, window: Window) -> Result<(usize, Vec<Cow<'b, Value>>), DecodeError> {
    let lacking = || super::lacking(rows);
    let found = match rows.at.iter().find_map(|path| path.find(body).filter(|v| !v.is_null())) {
        Some(found) => found,
        None if rows.sparse && body.is_object() => return Ok((0, Vec::new())),
        None => return Err(lacking()),
    };
    let Window { skip, take } = window;
    Ok(match (&rows.form, found) {
        (RowForm::List, Cow::Borrowed(Value::Array(items))) => {
            (items.len(), items.iter().skip(skip).take(take).map(Cow::Borrowed).collect())
        }
        (RowForm::List, Cow::Owned(Value::Array(items))) => {
            (items.len(), items.into_iter().skip(skip).take(take).map(Cow::Owned).collect())
        }
        (RowForm::One, found) if found.is_object() => (1, [found].into_iter().skip(skip).take(take).collect()),
        (RowForm::Wrap(field), found) => {
            let items = found.as_array().ok_or_else(lacking)?;
            let wrap = |item: &Value| Cow::Owned(wrapped(field, item.clone()));
            (items.len(), items.iter().skip(skip).take(take).map(wrap).collect())
        }
        (RowForm::Entries(field), found) => {
            let map = found.as_object().ok_or_else(lacking)?;
            let entry = |(key, value): (&String, &Value)| Cow::Owned(entry(field, key, value));
            (map.len(), map.iter().skip(skip).take(take).map(entry).collect())
        }
        (RowForm::Columns, found) => columns(&found, window).ok_or_else(lacking)?,
        _ => return Err(lacking()),
    })
}

/// An item without a row in it (a deleted one, an edge to nothing) is no row.
fn inner_rows<'b>(inner: &DataPath, items: Vec<Cow<'b, Value>>) -> Vec<Cow<'b, Value>> {
    let found = items.into_iter().filter_map(|item| match item {
        Cow::Borrowed(item) => inner.find(item),
        Cow::Owned(item) => inner.find(&item).map(|found| Cow::Owned(found.into_owned())),
    });
    found.filter(|row| !row.is_null()).collect()
}

pub(super) fn wrapped(field: &str, value: Value) -> Value {
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
fn columns<'b>(found: &Value, window: Window) -> Option<(usize, Vec<Cow<'b, Value>>)> {
    let map = found.as_object()?;
    let length = map.values().find_map(Value::as_array)?.len();
    let columns: Vec<(&String, &Vec<Value>)> = map
        .iter()
        .filter_map(|(name, column)| Some((name, column.as_array().filter(|c| c.len() == length)?)))
        .collect();
    let row = |at: usize| columns.iter().map(|(name, column)| ((*name).clone(), column[at].clone())).collect();
    let read = (0..length).skip(window.skip).take(window.take);
    Some((length, read.map(|at| Cow::Owned(Value::Object(row(at)))).collect()))
}

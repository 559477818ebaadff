//! Rows read from the whole answer as a parsed tree, for forms that `stream` cannot read: alternative paths, columns and
//! entries.
//! Invariant: where `stream` can read an answer, both give the same rows.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::row::RowReader;
use super::{DecodeError, RowWindow, RowsAndBody, find_refusal, no_rows_error};
use crate::model::{Capability, Catalog, RowForm, Rows};
use crate::path::DataPath;

pub(super) fn read(
    catalog: &Catalog,
    capability: &Capability,
    reader: &RowReader<'_>,
) -> Result<RowsAndBody, DecodeError> {
    let body: Value = serde_json::from_slice(&reader.input.response.body).map_err(DecodeError::NotJson)?;
    if let Some(refusal) = find_refusal(catalog, capability, &body) {
        return Err(DecodeError::Refused(refusal));
    }
    let window = reader.input.window;
    let (items, row_count) = match &capability.rows.item {
        None => {
            let items = items(&capability.rows, &body, window)?;
            (items.in_window, items.count)
        }
        // An item may hold no row, so the rows before the window can only be counted by looking at every item.
        Some(path) => {
            let rows = rows_inside(path, items(&capability.rows, &body, RowWindow::ALL)?.in_window);
            let row_count = rows.len();
            (rows.into_iter().skip(window.skip).take(window.take).collect(), row_count)
        }
    };
    let numbered = items.into_iter().enumerate();
    let rows = numbered
        .map(|(n, item)| reader.row_from_item(window.skip + n, &mut item.into_owned()))
        .collect::<Result<_, _>>()?;
    Ok(RowsAndBody { rows, row_count, body })
}

/// The items of an answer's list.
struct Items<'b> {
    /// The number of all items.
    count: usize,
    in_window: Vec<Cow<'b, Value>>,
}

fn items<'b>(rows: &Rows, body: &'b Value, window: RowWindow) -> Result<Items<'b>, DecodeError> {
    let no_rows = || no_rows_error(rows);
    let list_value = match rows.at.iter().find_map(|path| path.find(body).filter(|v| !v.is_null())) {
        Some(list_value) => list_value,
        None if rows.sparse && body.is_object() => return Ok(Items { count: 0, in_window: Vec::new() }),
        None => return Err(no_rows()),
    };
    let RowWindow { skip, take } = window;
    Ok(match (&rows.form, list_value) {
        (RowForm::List, Cow::Borrowed(Value::Array(items))) => {
            Items { count: items.len(), in_window: items.iter().skip(skip).take(take).map(Cow::Borrowed).collect() }
        }
        (RowForm::List, Cow::Owned(Value::Array(items))) => {
            Items { count: items.len(), in_window: items.into_iter().skip(skip).take(take).map(Cow::Owned).collect() }
        }
        (RowForm::One, list_value) if list_value.is_object() => {
            Items { count: 1, in_window: [list_value].into_iter().skip(skip).take(take).collect() }
        }
        (RowForm::Wrap(field), list_value) => {
            let items = list_value.as_array().ok_or_else(no_rows)?;
            let wrap = |item: &Value| Cow::Owned(wrapped(field, item.clone()));
            Items { count: items.len(), in_window: items.iter().skip(skip).take(take).map(wrap).collect() }
        }
        (RowForm::Entries(field), list_value) => {
            let map = list_value.as_object().ok_or_else(no_rows)?;
            let entry = |(key, value): (&String, &Value)| Cow::Owned(row_of_entry(field, key, value));
            Items { count: map.len(), in_window: map.iter().skip(skip).take(take).map(entry).collect() }
        }
        (RowForm::Columns, list_value) => rows_of_columns(&list_value, window).ok_or_else(no_rows)?,
        _ => return Err(no_rows()),
    })
}

/// Returns the row inside each item. An item without one, such as an edge to a deleted node, is left out.
fn rows_inside<'b>(path: &DataPath, items: Vec<Cow<'b, Value>>) -> Vec<Cow<'b, Value>> {
    let rows = items.into_iter().filter_map(|item| match item {
        Cow::Borrowed(item) => path.find(item),
        Cow::Owned(item) => path.find(&item).map(|row| Cow::Owned(row.into_owned())),
    });
    rows.filter(|row| !row.is_null()).collect()
}

/// Returns an item that is only the value of a field as an object with that field.
pub(super) fn wrapped(field: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(field.to_owned(), value)]))
}

/// Returns an entry of an object as an item, in which `field` holds the entry's key. A value that is no object is put under
/// `value`.
fn row_of_entry(field: &str, key: &str, value: &Value) -> Value {
    let mut map = match value {
        Value::Object(map) => map.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    map.insert(field.to_owned(), Value::String(key.to_owned()));
    Value::Object(map)
}

/// Returns the items of an answer in columns: `{"time": [1, 2], "rain": [0, 3]}` has two. A member that is not an array of
/// the first array's length is no column.
fn rows_of_columns<'b>(list_value: &Value, window: RowWindow) -> Option<Items<'b>> {
    let map = list_value.as_object()?;
    let count = map.values().find_map(Value::as_array)?.len();
    let columns: Vec<(&String, &Vec<Value>)> =
        map.iter().filter_map(|(name, column)| Some((name, column.as_array().filter(|c| c.len() == count)?))).collect();
    let item = |at: usize| columns.iter().map(|(name, column)| ((*name).clone(), column[at].clone())).collect();
    let numbers = (0..count).skip(window.skip).take(window.take);
    Some(Items { count, in_window: numbers.map(|at| Cow::Owned(Value::Object(item(at)))).collect() })
}

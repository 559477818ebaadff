//! Reads the rows of an answer from a parsed tree of the whole answer. This module handles the forms that `stream`
//! cannot read: alternative paths, columns and entries.
//! Invariant: for an answer that `stream` can read, both modules return the same rows.

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
            let items = select_items(&capability.rows, &body, window)?;
            (items.in_window, items.count)
        }
        // An item may contain no row, so counting the rows before the window needs a look at every item.
        Some(path) => {
            let rows = inner_rows(path, select_items(&capability.rows, &body, RowWindow::ALL)?.in_window);
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

/// The items of an answer's list, with those in the window.
struct Items<'b> {
    /// The number of all items.
    count: usize,
    in_window: Vec<Cow<'b, Value>>,
}

fn select_items<'b>(rows: &Rows, body: &'b Value, window: RowWindow) -> Result<Items<'b>, DecodeError> {
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
            let wrap = |item: &Value| Cow::Owned(wrap_in_field(field, item.clone()));
            Items { count: items.len(), in_window: items.iter().skip(skip).take(take).map(wrap).collect() }
        }
        (RowForm::Entries(field), list_value) => {
            let map = list_value.as_object().ok_or_else(no_rows)?;
            let entry = |(key, value): (&String, &Value)| Cow::Owned(item_of_entry(field, key, value));
            Items { count: map.len(), in_window: map.iter().skip(skip).take(take).map(entry).collect() }
        }
        (RowForm::Columns, list_value) => items_of_columns(&list_value, window).ok_or_else(no_rows)?,
        _ => return Err(no_rows()),
    })
}

/// Returns the row inside each item. An item without a row, such as an edge to a deleted node, is left out.
fn inner_rows<'b>(path: &DataPath, items: Vec<Cow<'b, Value>>) -> Vec<Cow<'b, Value>> {
    let rows = items.into_iter().filter_map(|item| match item {
        Cow::Borrowed(item) => path.find(item),
        Cow::Owned(item) => path.find(&item).map(|row| Cow::Owned(row.into_owned())),
    });
    rows.filter(|row| !row.is_null()).collect()
}

/// Makes an object with one field, for an item that is only the value of this field.
pub(super) fn wrap_in_field(field: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(field.to_owned(), value)]))
}

/// Makes an item from an entry of an object. The member `field` of the item is the entry's key. If the entry's value
/// is no object, it becomes the member `value`.
fn item_of_entry(field: &str, key: &str, value: &Value) -> Value {
    let mut map = match value {
        Value::Object(map) => map.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    map.insert(field.to_owned(), Value::String(key.to_owned()));
    Value::Object(map)
}

/// Makes the items of an answer that has columns: `{"time": [1, 2], "rain": [0, 3]}` has two items. A member is a
/// column if it is an array with the length of the first array.
fn items_of_columns<'b>(list_value: &Value, window: RowWindow) -> Option<Items<'b>> {
    let map = list_value.as_object()?;
    let count = map.values().find_map(Value::as_array)?.len();
    let columns: Vec<(&String, &Vec<Value>)> =
        map.iter().filter_map(|(name, column)| Some((name, column.as_array().filter(|c| c.len() == count)?))).collect();
    let item = |at: usize| columns.iter().map(|(name, column)| ((*name).clone(), column[at].clone())).collect();
    let numbers = (0..count).skip(window.skip).take(window.take);
    Some(Items { count, in_window: numbers.map(|at| Cow::Owned(Value::Object(item(at)))).collect() })
}

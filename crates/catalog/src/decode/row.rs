//! Makes one row from an item of an answer: the value of each field, and the rows of embedded relations.
//! Invariant: a row has every field of its entity and a complete key. Each value has the type of its field or is
//! `null`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::row_layout::{ColumnLayout, EmbeddedLayout, RowLayout};
use super::{DecodeError, DecodeInput};
use crate::model::{Field, FieldSource, Row};
use crate::types::{Type, TypeError};

/// Makes rows of one entity from the items of an answer.
#[derive(Clone, Copy)]
pub(super) struct RowReader<'a> {
    pub layout: &'a RowLayout<'a>,
    pub input: &'a DecodeInput<'a>,
    /// The row that embeds the rows of this reader, if there is one. A part of the key that an embedded row lacks is
    /// taken from this parent row.
    parent: Option<&'a Row>,
    /// Whether the answer is a list. The rows of a list have different keys, so an argument cannot be the key of each
    /// row.
    is_list: bool,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(layout: &'a RowLayout<'a>, input: &'a DecodeInput<'a>, is_list: bool) -> Self {
        Self { layout, input, parent: None, is_list }
    }

    /// Makes the row with this number from a whole item. Values are moved out of the item where possible, which saves
    /// copies.
    pub(super) fn row_from_item(&self, number: usize, item: &mut Value) -> Result<Row, DecodeError> {
        let columns = self.layout.columns.iter();
        let mut values: Vec<Value> =
            columns.map(|column| column.exclusive_path.and_then(|path| path.take(item)).unwrap_or_default()).collect();
        self.row_from_values(number, &mut values, item)
    }

    /// Makes the row with this number. `values` has the values of the fields with an exclusive path, by the number of
    /// the field. The values of the other fields are searched in `kept`. All of `values` are set to `null`.
    pub(super) fn row_from_values(
        &self,
        number: usize,
        values: &mut [Value],
        kept: &Value,
    ) -> Result<Row, DecodeError> {
        let RowLayout { entity, columns, blank, .. } = self.layout;
        for (column, value) in columns.iter().zip(values.iter_mut()).filter(|(c, _)| c.exclusive_path.is_none()) {
            *value = self.find_value(column.field, kept).into_owned();
        }
        // An item without any value of the entity is no row, even if the arguments of the call have a complete key.
        let is_empty = values.iter().all(Value::is_null);
        let mut row = blank.clone();
        for ((column, value), cell) in columns.iter().zip(values).zip(row.values_mut()) {
            let field = column.field;
            let wire_value = value.take();
            *cell = if wire_value.is_null() && column.is_key && !is_empty {
                // A value from the arguments or from the parent row already has its row form, so it is not converted.
                self.known_key_part(field).cloned().unwrap_or_default()
            } else {
                match field.kind.from_wire(field.wire, &wire_value) {
                    Cow::Borrowed(_) => wire_value,
                    Cow::Owned(converted) => converted,
                }
            };
            if cell.is_null() && column.is_key {
                return Err(DecodeError::NoKey { row: number, entity: entity.name.clone(), field: field.name.clone() });
            }
            check_value(column, cell).map_err(|cause| DecodeError::Field {
                row: number,
                entity: entity.name.clone(),
                field: field.name.clone(),
                cause,
            })?;
        }
        for embedded in &self.layout.embedded {
            let rows = self.embedded_rows(number, embedded, kept, &row)?;
            row.insert(embedded.relation.name.clone(), rows);
        }
        Ok(row)
    }

    /// Returns the value of a field in the API's form, or `null` if the answer has no value for the field.
    fn find_value<'v>(&self, field: &Field, item: &'v Value) -> Cow<'v, Value> {
        let value = match &field.source {
            FieldSource::Paths(paths) => paths.iter().find_map(|path| path.find(item).filter(|v| !v.is_null())),
            FieldSource::Parts(parts) => {
                let key: Option<Map<String, Value>> = parts
                    .iter()
                    .map(|(part, path)| Some((part.clone(), path.find(item).filter(|v| !v.is_null())?.into_owned())))
                    .collect();
                key.map(|key| Cow::Owned(Value::Object(key)))
            }
            FieldSource::Header(name) => {
                self.input.response.header(name).map(|text| Cow::Owned(Value::String(text.to_owned())))
            }
        };
        value.unwrap_or(Cow::Owned(Value::Null))
    }

    /// Returns a part of the key that the answer leaves out, from the parent row or from the call's arguments.
    fn known_key_part(&self, field: &Field) -> Option<&Value> {
        let has_several_parts = self.layout.entity.key.len() > 1;
        if let Some(parent) = self.parent {
            return parent.get(&field.name).filter(|_| has_several_parts);
        }
        // The rows of a list have different keys, so one argument cannot be the whole key of each row.
        if self.is_list && !has_several_parts {
            return None;
        }
        let args = self.input.args;
        // An argument that is a reference contains parts of a key: `ticket = {project, number}` contains the project.
        let in_reference = || args.values().find_map(|value| value.as_object()?.get(&field.name));
        args.get(&field.name).or_else(in_reference)
    }

    fn embedded_rows(
        &self,
        number: usize,
        embedded: &EmbeddedLayout<'_>,
        item: &Value,
        parent: &Row,
    ) -> Result<Value, DecodeError> {
        let rows_value = embedded.path.find(item);
        let items: Vec<&Value> = match rows_value.as_deref() {
            Some(Value::Array(items)) => items.iter().filter(|item| !item.is_null()).collect(),
            Some(object @ Value::Object(_)) => vec![object],
            _ => Vec::new(),
        };
        let reader = RowReader { layout: &embedded.layout, input: self.input, parent: Some(parent), is_list: true };
        items.into_iter().map(|item| reader.row_from_item(number, &mut item.clone()).map(Value::Object)).collect()
    }
}

/// Checks a value of an answer against the type of its column. This check is more tolerant than `Type::accept`, which
/// also checks the values of programs.
fn check_value(column: &ColumnLayout<'_>, value: &Value) -> Result<(), TypeError> {
    match (&column.field.kind, value) {
        (_, Value::Null) => Ok(()),
        // The catalog may be older than the API, so an unknown choice or an unknown member of an object is accepted
        // as data.
        (Type::Select(_), Value::String(_)) | (Type::Object(_) | Type::Union(_), Value::Object(_)) => Ok(()),
        (Type::MultiSelect(_), Value::Array(items)) if items.iter().all(Value::is_string) => Ok(()),
        (Type::Ref(_), value) => check_reference(column, value),
        (Type::Array(item_type), Value::Array(items)) => match item_type.as_ref() {
            Type::Ref(_) => items.iter().try_for_each(|item| check_reference(column, item)),
            Type::Object(_) | Type::Union(_) | Type::Select(_) => Ok(()),
            item_type => items.iter().try_for_each(|item| item_type.accept(item)),
        },
        (kind, value) => kind.accept(value),
    }
}

/// Checks that a value is a key of the entity that the column refers to.
fn check_reference(column: &ColumnLayout<'_>, value: &Value) -> Result<(), TypeError> {
    let (target, key) = column.refers_to.unwrap_or_default();
    let is_key = match (key, value) {
        ([_], Value::String(_) | Value::Number(_)) => true,
        (parts, Value::Object(map)) => parts.iter().all(|p| map.get(p).is_some_and(|v| !v.is_null())),
        _ => false,
    };
    if is_key {
        return Ok(());
    }
    Err(TypeError::Mismatch {
        expected: format!("a reference to {target}"),
        found: value.to_string().chars().take(60).collect(),
    })
}

//! One row: each field from where it lies, and the rows of relations that the payload embeds.
//! Invariant: every field is there, of its type or `null`; the key is whole.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::shape::{Column, Embedded, Shape};
use super::{Answer, DecodeError};
use crate::model::{Field, Row, Source};
use crate::types::{Type, TypeError};

#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub shape: &'a Shape<'a>,
    pub answer: &'a Answer<'a>,
    /// The row that embeds these: parts of the key that they leave out are taken from it.
    parent: Option<&'a Row>,
    many: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shape: &'a Shape<'a>, answer: &'a Answer<'a>, many: bool) -> Self {
        Self { shape, answer, parent: None, many }
    }

    /// A row from the whole of its item.
    pub(super) fn row(&self, at: usize, item: &mut Value) -> Result<Row, DecodeError> {
        let taken = |column: &Column<'_>| column.own.and_then(|path| path.take(item)).unwrap_or_default();
        let mut values: Vec<Value> = self.shape.columns.iter().map(taken).collect();
        self.finish(at, &mut values, item)
    }

    /// `values`: of the fields that have a place of their own, by number; all are `null` afterwards. `kept`: the item, or
    /// what of it the others need.
    pub(super) fn finish(&self, at: usize, values: &mut [Value], kept: &Value) -> Result<Row, DecodeError> {
        let Shape { entity, columns, blank, .. } = self.shape;
        for (column, value) in columns.iter().zip(values.iter_mut()).filter(|(column, _)| column.own.is_none()) {
            *value = self.find(column.field, kept).into_owned();
        }
        // An answer with nothing of the entity in it is no row of it, whatever was asked for.
        let empty = values.iter().all(Value::is_null);
        let named = |field: &Field| (entity.name.clone(), field.name.clone());
        let mut row = blank.clone();
        for ((column, value), cell) in columns.iter().zip(values).zip(row.values_mut()) {
            let field = column.field;
            let found = value.take();
            *cell = if found.is_null() && column.is_key && !empty {
                // What was asked, or the parent, is as a session keeps it: it did not travel.
                self.known(field).cloned().unwrap_or_default()
            } else {
                match field.kind.from_wire(field.wire, &found) {
                    Cow::Borrowed(_) => found,
                    Cow::Owned(other) => other,
                }
            };
            if cell.is_null() && column.is_key {
                let (entity, field) = named(field);
                return Err(DecodeError::NoKey { row: at, entity, field });
            }
            check(column, cell).map_err(|cause| {
                let (entity, field) = named(field);
                DecodeError::Field { row: at, entity, field, cause }
            })?;
        }
        for embedded in &self.shape.embedded {
            let rows = self.embedded(at, embedded, kept, &row)?;
            row.insert(embedded.relation.name.clone(), rows);
        }
        Ok(row)
    }

    fn find<'v>(&self, field: &Field, item: &'v Value) -> Cow<'v, Value> {
        let found = match &field.source {
            Source::Paths(paths) => paths.iter().find_map(|path| path.find(item).filter(|v| !v.is_null())),
            Source::Parts(parts) => {
                let found: Option<Map<String, Value>> = parts
                    .iter()
                    .map(|(part, path)| Some((part.clone(), path.find(item).filter(|v| !v.is_null())?.into_owned())))
                    .collect();
                found.map(|map| Cow::Owned(Value::Object(map)))
            }
            Source::Header(name) => {
                self.answer.response.header(name).map(|text| Cow::Owned(Value::String(text.to_owned())))
            }
        };
        found.unwrap_or(Cow::Owned(Value::Null))
    }

    /// A part of the key that the answer leaves out, because the caller said it or the parent row has it.
    fn known(&self, field: &Field) -> Option<&Value> {
        let several = self.shape.entity.key.len() > 1;
        if let Some(parent) = self.parent {
            return parent.get(&field.name).filter(|_| several);
        }
        // Rows of a list differ in their key: the whole of it cannot be what the caller said.
        if self.many && !several {
            return None;
        }
        let args = self.answer.args;
        // `ticket` = {project, number} also says the project.
        let inside = || args.values().find_map(|value| value.as_object()?.get(&field.name));
        args.get(&field.name).or_else(inside)
    }

    fn embedded(&self, at: usize, of: &Embedded<'_>, item: &Value, row: &Row) -> Result<Value, DecodeError> {
        let found = of.path.find(item);
        let items: Vec<&Value> = match found.as_deref() {
            Some(Value::Array(items)) => items.iter().filter(|item| !item.is_null()).collect(),
            Some(object @ Value::Object(_)) => vec![object],
            _ => Vec::new(),
        };
        let reader = Reader { shape: &of.shape, answer: self.answer, parent: Some(row), many: true };
        items.into_iter().map(|item| reader.row(at, &mut item.clone()).map(Value::Object)).collect()
    }
}

fn check(column: &Column<'_>, value: &Value) -> Result<(), TypeError> {
    match (&column.field.kind, value) {
        (_, Value::Null) => Ok(()),
        // A new choice of the server's is data, not a lie: the catalog may be older than the API. So is a new slot.
        (Type::Select(_), Value::String(_)) | (Type::Object(_) | Type::Union(_), Value::Object(_)) => Ok(()),
        (Type::MultiSelect(_), Value::Array(items)) if items.iter().all(Value::is_string) => Ok(()),
        (Type::Ref(_), value) => check_reference(column, value),
        (Type::Array(of), Value::Array(items)) => match of.as_ref() {
            Type::Ref(_) => items.iter().try_for_each(|item| check_reference(column, item)),
            Type::Object(_) | Type::Union(_) | Type::Select(_) => Ok(()),
            of => items.iter().try_for_each(|item| of.accept(item)),
        },
        (kind, value) => kind.accept(value),
    }
}

fn check_reference(column: &Column<'_>, value: &Value) -> Result<(), TypeError> {
    let (target, key) = column.refers.unwrap_or_default();
    let fits = match (key, value) {
        ([_], Value::String(_) | Value::Number(_)) => true,
        (parts, Value::Object(map)) => parts.iter().all(|p| map.get(p).is_some_and(|v| !v.is_null())),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(TypeError::Mismatch {
        expected: format!("a reference to {target}"),
        found: value.to_string().chars().take(60).collect(),
    })
}

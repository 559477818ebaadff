//! One row: each field from where it lies, and the rows of relations that the payload embeds.
//! Invariant: every field is there, of its type or `null`; the key is whole.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Answer, DecodeError};
use crate::model::{Catalog, Entity, Field, Row, Source, Via};
use crate::types::{Type, TypeError};

pub(super) struct Reader<'a> {
    pub catalog: &'a Catalog,
    pub entity: &'a Entity,
    pub answer: &'a Answer<'a>,
    /// The row that embeds these: parts of the key that they leave out are taken from it.
    parent: Option<&'a Row>,
    many: bool,
    /// For each field, whether nothing else reads below the same name, so that its value can be moved into its row.
    alone: Vec<bool>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(catalog: &'a Catalog, entity: &'a Entity, answer: &'a Answer<'a>, many: bool) -> Self {
        Self { catalog, entity, answer, parent: None, many, alone: alone(entity) }
    }

    pub(super) fn row(&self, at: usize, item: &mut Value) -> Result<Row, DecodeError> {
        let entity = self.entity;
        let wrong = |field: &Field, cause| DecodeError::Field {
            row: at,
            entity: entity.name.clone(),
            field: field.name.clone(),
            cause,
        };
        // An answer with nothing of the entity in it is no row of it, whatever was asked for.
        let empty = entity.fields.values().all(|field| self.find(field, item).is_null());
        let mut row = Row::with_capacity(entity.fields.len());
        for (field, alone) in entity.fields.values().zip(&self.alone) {
            let is_key = entity.key.contains(&field.name);
            let (name, found) = if *alone { moved(field, item) } else { (None, self.find(field, item).into_owned()) };
            let value = if found.is_null() && is_key && !empty {
                // What was asked, or the parent, is as a session keeps it: it did not travel.
                self.known(field).cloned().unwrap_or_default()
            } else {
                match field.kind.from_wire(field.wire, &found) {
                    Cow::Borrowed(_) => found,
                    Cow::Owned(other) => other,
                }
            };
            if value.is_null() && is_key {
                return Err(DecodeError::NoKey { row: at, entity: entity.name.clone(), field: field.name.clone() });
            }
            check(self.catalog, field, &value).map_err(|cause| wrong(field, cause))?;
            row.insert(name.unwrap_or_else(|| field.name.clone()), value);
        }
        self.embedded(at, item, &mut row)?;
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
        let several = self.entity.key.len() > 1;
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

    fn embedded(&self, at: usize, item: &Value, row: &mut Row) -> Result<(), DecodeError> {
        // One level: what is embedded in something embedded is reached by its own read.
        if self.parent.is_some() {
            return Ok(());
        }
        for relation in self.entity.relations.values() {
            let Via::Embedded { path } = &relation.via else { continue };
            let Some(target) = self.catalog.entity(&relation.target) else { continue };
            let found = path.find(item);
            let items: Vec<&Value> = match found.as_deref() {
                Some(Value::Array(items)) => items.iter().filter(|item| !item.is_null()).collect(),
                Some(object @ Value::Object(_)) => vec![object],
                _ => Vec::new(),
            };
            let rows: Vec<Value> = {
                let reader = Reader { parent: Some(row), ..Reader::new(self.catalog, target, self.answer, true) };
                items
                    .into_iter()
                    .map(|item| reader.row(at, &mut item.clone()).map(Value::Object))
                    .collect::<Result<_, _>>()?
            };
            row.insert(relation.name.clone(), Value::Array(rows));
        }
        Ok(())
    }
}

/// Which fields come from one place that no other field or embedded relation reads below.
fn alone(entity: &Entity) -> Vec<bool> {
    let embedded = entity.relations.values().filter_map(|r| match &r.via {
        Via::Embedded { path } => Some(path.first()),
        _ => None,
    });
    fn of_field(field: &Field) -> Vec<Option<&str>> {
        match &field.source {
            Source::Paths(paths) => paths.iter().map(|path| path.first()).collect(),
            Source::Parts(parts) => parts.values().map(|path| path.first()).collect(),
            Source::Header(_) => Vec::new(),
        }
    }
    let tops: Vec<Option<&str>> = entity.fields.values().flat_map(of_field).chain(embedded).collect();
    let whole = tops.contains(&None);
    fn single(field: &Field) -> Option<&str> {
        match &field.source {
            Source::Paths(paths) => match paths.as_slice() {
                [path] if path.is_single() => path.first(),
                _ => None,
            },
            _ => None,
        }
    }
    let is_alone = |field| {
        single(field).is_some_and(|top| !whole && tops.iter().flatten().filter(|other| **other == top).count() == 1)
    };
    entity.fields.values().map(is_alone).collect()
}

/// The value taken out of its item; what came as a member of the field's own name brings that name along.
fn moved(field: &Field, item: &mut Value) -> (Option<String>, Value) {
    let Source::Paths(paths) = &field.source else { return (None, Value::Null) };
    let Some(path) = paths.first() else { return (None, Value::Null) };
    if let Value::Object(members) = item
        && path.first() == Some(field.name.as_str())
        && path.names().count() == 1
    {
        return match members.swap_remove_entry(&field.name) {
            Some((name, value)) => (Some(name), value),
            None => (None, Value::Null),
        };
    }
    (None, path.take(item).unwrap_or_default())
}

fn check(catalog: &Catalog, field: &Field, value: &Value) -> Result<(), TypeError> {
    match (&field.kind, value) {
        (_, Value::Null) => Ok(()),
        // A new choice of the server's is data, not a lie: the catalog may be older than the API. So is a new slot.
        (Type::Select(_), Value::String(_)) | (Type::Object(_) | Type::Union(_), Value::Object(_)) => Ok(()),
        (Type::MultiSelect(_), Value::Array(items)) if items.iter().all(Value::is_string) => Ok(()),
        (Type::Ref(target), value) => check_reference(catalog, target, value),
        (Type::Array(of), Value::Array(items)) => match of.as_ref() {
            Type::Ref(target) => items.iter().try_for_each(|item| check_reference(catalog, target, item)),
            Type::Object(_) | Type::Union(_) | Type::Select(_) => Ok(()),
            of => items.iter().try_for_each(|item| of.accept(item)),
        },
        (kind, value) => kind.accept(value),
    }
}

fn check_reference(catalog: &Catalog, target: &str, value: &Value) -> Result<(), TypeError> {
    let key = catalog.entity(target).map(|e| e.key.as_slice()).unwrap_or_default();
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

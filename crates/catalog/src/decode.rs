//! An answer to rows: the fields of the capability's entity, by their paths, checked against their types.
//! Invariant: a row that comes out has every field of its entity, in order, `null` where the answer had none, and a whole key.

use base::Response;
use serde_json::Value;

use crate::model::{Capability, Catalog, Entity, Field, Kind, Row};
use crate::paging::{After, Page, PageRequest, PagingError};
use crate::types::{Type, TypeError};

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
}

pub fn decode(
    catalog: &Catalog,
    capability: &Capability,
    response: &Response,
    asked: Option<Asked<'_>>,
    nesting: usize,
) -> Result<Decoded, DecodeError> {
    if base::depth_exceeds(&response.body, nesting) {
        return Err(DecodeError::TooDeep(nesting));
    }
    let mut body: Value = serde_json::from_slice(&response.body).map_err(DecodeError::NotJson)?;
    let entity = catalog.entity(&capability.entity).ok_or_else(|| DecodeError::NoEntity(capability.entity.clone()))?;
    let count = match (capability.kind, capability.rows.find(&body)) {
        (Kind::Query, Some(Value::Array(items))) => items.len(),
        (Kind::Get, Some(Value::Object(_))) => 1,
        _ => return Err(DecodeError::NoRows(capability.rows.to_string())),
    };
    // Before the rows are taken out of the answer: a place may be told inside them. A row that is wrong is told first.
    let after = match (&capability.paging, asked) {
        (Some(paging), Some(asked)) => {
            let page = Page { response, body: &body, rows: count };
            paging.after(&catalog.origin, asked.page, &page, asked.seen + count)
        }
        _ => Ok(After::End),
    };
    let items = match capability.rows.find_mut(&mut body).map(Value::take) {
        Some(Value::Array(items)) if capability.kind == Kind::Query => items,
        Some(object) => vec![object],
        None => Vec::new(),
    };
    let alone = alone(entity);
    let rows = items.into_iter().enumerate().map(|(at, item)| decode_row(catalog, (entity, &alone), item, at));
    Ok(Decoded { rows: rows.collect::<Result<_, _>>()?, after: after? })
}

/// For each field, whether no other reads anything below the same name, so that its value can be moved into its row.
fn alone(entity: &Entity) -> Vec<bool> {
    let tops: Vec<Option<&String>> = entity.fields.values().map(|field| field.path.names().first()).collect();
    let whole = tops.contains(&None);
    tops.iter().map(|top| !whole && tops.iter().filter(|other| *other == top).count() == 1).collect()
}

/// What a field's path leads to, and the field's name. What came as a member of that very name goes on as it is.
fn member(field: &Field, alone: bool, item: &mut Value) -> (String, Value) {
    if !alone || !item.is_object() {
        return (field.name.clone(), field.path.find(item).cloned().unwrap_or_default());
    }
    match (field.path.names(), item) {
        ([name], Value::Object(members)) if *name == field.name => {
            members.swap_remove_entry(name).unwrap_or_else(|| (field.name.clone(), Value::Null))
        }
        (_, item) => (field.name.clone(), field.path.find_mut(item).map(Value::take).unwrap_or_default()),
    }
}

fn decode_row(
    catalog: &Catalog,
    (entity, alone): (&Entity, &[bool]),
    mut item: Value,
    at: usize,
) -> Result<Row, DecodeError> {
    let mut row = Row::with_capacity(entity.fields.len());
    for (field, alone) in entity.fields.values().zip(alone) {
        let (name, value) = member(field, *alone, &mut item);
        if value.is_null() && entity.key.contains(&field.name) {
            return Err(DecodeError::NoKey { row: at, entity: entity.name.clone(), field: field.name.clone() });
        }
        check_field(catalog, field, &value).map_err(|cause| DecodeError::Field {
            row: at,
            entity: entity.name.clone(),
            field: field.name.clone(),
            cause,
        })?;
        row.insert(name, value);
    }
    Ok(row)
}

fn check_field(catalog: &Catalog, field: &Field, value: &Value) -> Result<(), TypeError> {
    match (&field.kind, value) {
        (_, Value::Null) => Ok(()),
        // A new choice of the server's is data, not a lie: the catalog may be older than the API.
        (Type::Select(_), Value::String(_)) => Ok(()),
        (Type::Ref(target), value) => check_reference(catalog, target, value),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_read_the_same_place_all_get_it() {
        let text = "catalog: x\nversion: 1\ntitle: X\norigin: http://x.localhost\nentities:\n  A:\n    about: a\n    key: [id]\n    \
                    fields: {id: string, owner: {type: string, path: owner.id}, name: {type: string, path: owner.name}, \
                    all: {type: json, path: owner}, other: {type: string, path: renamed}, same: {type: string, path: id}}\n\
                    capabilities:\n  a_list: {query: A, http: GET /a, rows: data}\n";
        let catalog = crate::read("x.yaml", text).unwrap();
        let owner = json!({"id": "o", "name": "n"});
        let body =
            json!({"data": [{"renamed": "r", "owner": owner, "id": "1", "unknown": 7}]}).to_string().into_bytes();
        let response = Response { status: 200, headers: Vec::new(), body };
        let decoded = decode(&catalog, &catalog.capabilities["a_list"], &response, None, 64).unwrap();
        let expected = json!({"id": "1", "owner": "o", "name": "n", "all": owner, "other": "r", "same": "1"});
        assert_eq!(Value::Object(decoded.rows[0].clone()), expected);
        let names: Vec<&String> = decoded.rows[0].keys().collect();
        assert_eq!(names, ["id", "owner", "name", "all", "other", "same"], "in the entity's order");
    }
}

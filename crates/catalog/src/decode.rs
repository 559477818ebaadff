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
    let body: Value = serde_json::from_slice(&response.body).map_err(DecodeError::NotJson)?;
    let entity = catalog.entity(&capability.entity).ok_or_else(|| DecodeError::NoEntity(capability.entity.clone()))?;
    let found = capability.rows.find(&body).ok_or_else(|| DecodeError::NoRows(capability.rows.to_string()))?;
    let items: &[Value] = match (capability.kind, found) {
        (Kind::Query, Value::Array(items)) => items,
        (Kind::Get, object @ Value::Object(_)) => std::slice::from_ref(object),
        _ => return Err(DecodeError::NoRows(capability.rows.to_string())),
    };
    let rows: Vec<Row> =
        items.iter().enumerate().map(|(at, item)| decode_row(catalog, entity, item, at)).collect::<Result<_, _>>()?;
    let after = match (&capability.paging, asked) {
        (Some(paging), Some(asked)) => {
            let page = Page { response, body: &body, rows: rows.len() };
            paging.after(&catalog.origin, asked.page, &page, asked.seen + rows.len())?
        }
        _ => After::End,
    };
    Ok(Decoded { rows, after })
}

fn decode_row(catalog: &Catalog, entity: &Entity, item: &Value, at: usize) -> Result<Row, DecodeError> {
    let mut row = Row::with_capacity(entity.fields.len());
    for field in entity.fields.values() {
        let value = field.path.find(item).unwrap_or(&Value::Null);
        if value.is_null() && entity.key.contains(&field.name) {
            return Err(DecodeError::NoKey { row: at, entity: entity.name.clone(), field: field.name.clone() });
        }
        check_field(catalog, field, value).map_err(|cause| DecodeError::Field {
            row: at,
            entity: entity.name.clone(),
            field: field.name.clone(),
            cause,
        })?;
        row.insert(field.name.clone(), value.clone());
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

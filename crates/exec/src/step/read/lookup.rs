//! Reads the rows that references lead to, each distinct one once.
//! Invariant: the order is the input's; a dangling reference is reported, and never becomes an empty row.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Args, Catalog, Row};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lang::plan::Path;
use serde_json::Value;

use crate::call::{self, Part, Reads, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::data::hash::ByValue;
use crate::error::StepError;
use crate::outcome::{Attached, Rowset};

/// The rows that were read, whether all were requested, and how many references lead to nothing.
pub struct Lookup {
    pub table: Attached,
    pub coverage: Coverage,
    pub gone: usize,
}

/// Returns the entity that a field of each input row refers to.
pub async fn deref(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    input: &Rowset,
    field: &str,
    limit: Option<usize>,
) -> Result<Rowset, StepError> {
    let values = input.rows.iter().filter_map(|row| row.get(field));
    let references: Vec<&Value> = values.flat_map(references).take(limit.unwrap_or(usize::MAX)).collect();
    let found = read(reads, catalog, target, vec![field.into()], &references).await?;
    if found.gone > 0 && references.len() == 1 {
        return Err(StepError::Missing { what: field.to_owned(), of: Some(format!("the API: no such {target}")) });
    }
    let rows: Vec<Arc<Row>> = references.iter().filter_map(|reference| found.table.find(reference).cloned()).collect();
    let enough = input.leading && found.gone == 0 && limit.is_some_and(|limit| rows.len() >= limit);
    let gone = if found.gone > 0 { Coverage::partial(PartialReason::Gone) } else { Coverage::Complete };
    let from = if enough { Coverage::Complete } else { input.coverage.clone() };
    let coverage = from.and(found.coverage).and(gone);
    Ok(Rowset { rows, coverage, leading: input.leading, ..Rowset::default() })
}

/// Returns the references in a value: one, or those of a list.
pub fn references(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Null => Box::new(std::iter::empty()),
        Value::Array(items) => Box::new(items.iter().filter(|item| !item.is_null())),
        one => Box::new(std::iter::once(one)),
    }
}

/// Reads each distinct reference concurrently, within the plan's bound.
pub async fn read(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    path: Path,
    references: &[&Value],
) -> Result<Lookup, StepError> {
    let lacking = || StepError::Catalog(catalog.id.clone());
    let capability = catalog.get_of(target).ok_or_else(lacking)?;
    let key = &catalog.entity(target).ok_or_else(lacking)?.key;
    let mut known = HashSet::new();
    let distinct: Vec<&Value> = references.iter().copied().filter(|value| known.insert(ByValue(value))).collect();
    let call = |reference| one(reads, Target { catalog, capability }, key, reference).boxed();
    let calls: Vec<_> = distinct.into_iter().map(call).collect();
    let mut answers = stream::iter(calls).buffer_unordered(reads.ctx.limits.calls_per_origin.max(1));
    let mut found = Lookup { table: Attached::new(path), coverage: Coverage::Complete, gone: 0 };
    while let Some((reference, answer)) = answers.try_next().await? {
        match answer {
            RowRead::Row(row) => found.table.insert(reference, Some(row)),
            RowRead::Gone => {
                found.gone += 1;
                found.table.insert(reference, None);
            }
            RowRead::Forbidden => found.coverage = Coverage::partial(PartialReason::Bound),
        }
    }
    Ok(found)
}

/// The result of reading one row by its key.
pub enum RowRead {
    Row(Arc<Row>),
    Gone,
    /// The plan's bound was reached before this call.
    Forbidden,
}

async fn one(
    reads: &Reads<'_>,
    target: Target<'_>,
    key: &[String],
    reference: &Value,
) -> Result<(Value, RowRead), StepError> {
    Ok((reference.clone(), by_key(reads, target, &key_args(key, reference)).await?))
}

/// Reads one row by its key.
pub async fn by_key(reads: &Reads<'_>, target: Target<'_>, args: &Args) -> Result<RowRead, StepError> {
    match call::read(reads, target, args, Part::WHOLE).await {
        Ok(decoded) => Ok(decoded.rows.into_iter().next().map_or(RowRead::Gone, |row| RowRead::Row(Arc::new(row)))),
        Err(error) if error.is_not_found() => Ok(RowRead::Gone),
        Err(StepError::Bound { .. }) => Ok(RowRead::Forbidden),
        Err(error) => Err(error),
    }
}

/// Returns the arguments of a `get` for a reference, which is a scalar or an object of key parts.
pub fn key_args(key: &[String], reference: &Value) -> Args {
    match (key, reference) {
        ([only], scalar) if !scalar.is_object() => Args::from([(only.clone(), scalar.clone())]),
        (parts, reference) => {
            parts.iter().map(|part| (part.clone(), reference.get(part).cloned().unwrap_or(Value::Null))).collect()
        }
    }
}

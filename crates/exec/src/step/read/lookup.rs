//! What references lead to: each distinct one is read once.
//! Invariant: order is the input's; a reference to what is gone is told, never an empty row.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Args, Catalog, Row};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lang::plan::Path;
use serde_json::Value;

use crate::call::{self, Part, Reads, Target};
use crate::coverage::{Coverage, Why};
use crate::data::hash::ByValue;
use crate::error::StepError;
use crate::outcome::{Attached, Rowset};

/// What was found, whether all was asked for, and how many are gone.
pub struct Found {
    pub table: Attached,
    pub coverage: Coverage,
    pub gone: usize,
}

/// The entity that a field of each input row refers to.
pub async fn deref(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    (input, field): (&Rowset, &str),
    limit: Option<usize>,
) -> Result<Rowset, StepError> {
    let held = input.rows.iter().filter_map(|row| row.get(field));
    let references: Vec<&Value> = held.flat_map(references).take(limit.unwrap_or(usize::MAX)).collect();
    let found = read(reads, catalog, target, (vec![field.into()], &references)).await?;
    if found.gone > 0 && references.len() == 1 {
        return Err(StepError::Missing { what: field.to_owned(), of: Some(format!("the API: no such {target}")) });
    }
    let rows: Vec<Arc<Row>> = references.iter().filter_map(|reference| found.table.find(reference).cloned()).collect();
    let enough = input.leading && found.gone == 0 && limit.is_some_and(|limit| rows.len() >= limit);
    let gone = if found.gone > 0 { Coverage::partial(Why::Gone) } else { Coverage::Complete };
    let from = if enough { Coverage::Complete } else { input.coverage.clone() };
    let coverage = from.and(found.coverage).and(gone);
    Ok(Rowset { rows, coverage, leading: input.leading, ..Rowset::default() })
}

/// A reference, or those of a list.
pub fn references(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Null => Box::new(std::iter::empty()),
        Value::Array(items) => Box::new(items.iter().filter(|item| !item.is_null())),
        one => Box::new(std::iter::once(one)),
    }
}

pub async fn read(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    (path, references): (Path, &[&Value]),
) -> Result<Found, StepError> {
    let lacking = || StepError::Catalog(catalog.id.clone());
    let capability = catalog.get_of(target).ok_or_else(lacking)?;
    let key = &catalog.entity(target).ok_or_else(lacking)?.key;
    let mut seen = HashSet::new();
    let distinct: Vec<&Value> = references.iter().copied().filter(|value| seen.insert(ByValue(value))).collect();
    let call = |reference| one(reads, (catalog, capability), key, reference).boxed();
    let calls: Vec<_> = distinct.into_iter().map(call).collect();
    let mut answers = stream::iter(calls).buffer_unordered(reads.ctx.limits.calls_per_origin.max(1));
    let mut found = Found { table: Attached::new(path), coverage: Coverage::Complete, gone: 0 };
    while let Some((reference, answer)) = answers.try_next().await? {
        match answer {
            Read::Row(row) => found.table.insert(reference, Some(row)),
            Read::Gone => {
                found.gone += 1;
                found.table.insert(reference, None);
            }
            Read::Forbidden => found.coverage = Coverage::partial(Why::Bound),
        }
    }
    Ok(found)
}

/// What a get by a key comes to.
pub enum Read {
    Row(Arc<Row>),
    Gone,
    /// The plan's bound was reached before.
    Forbidden,
}

async fn one(
    reads: &Reads<'_>,
    target: Target<'_>,
    key: &[String],
    reference: &Value,
) -> Result<(Value, Read), StepError> {
    Ok((reference.clone(), by_key(reads, target, &key_args(key, reference)).await?))
}

pub async fn by_key(reads: &Reads<'_>, target: Target<'_>, args: &Args) -> Result<Read, StepError> {
    match call::read(reads, target, args, Part::WHOLE).await {
        Ok(decoded) => Ok(decoded.rows.into_iter().next().map_or(Read::Gone, |row| Read::Row(Arc::new(row)))),
        Err(error) if error.is_not_found() => Ok(Read::Gone),
        Err(StepError::Bound { .. }) => Ok(Read::Forbidden),
        Err(error) => Err(error),
    }
}

pub fn key_args(key: &[String], reference: &Value) -> Args {
    match (key, reference) {
        ([only], scalar) if !scalar.is_object() => Args::from([(only.clone(), scalar.clone())]),
        (parts, reference) => {
            parts.iter().map(|part| (part.clone(), reference.get(part).cloned().unwrap_or(Value::Null))).collect()
        }
    }
}

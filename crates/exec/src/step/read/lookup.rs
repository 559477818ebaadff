//! The steps that read referenced rows, each distinct reference once. `deref` returns the referenced rows; `attach` adds them
//! to the input, so that paths can pass through references.
//! Invariant: rows are in input order. A reference to a row that does not exist never becomes an empty row.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Args, Catalog, Row};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lang::plan::Path;
use serde_json::Value;
use smol_str::SmolStr;

use crate::call::{self, ListPart, ReadContext, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::data::equality::ByValue;
use crate::error::StepError;
use crate::outcome::{Attached, Rowset};
use crate::value::view::RowsView;

/// Returns the rows to which a field of the input rows refers.
pub async fn deref(
    reads: &ReadContext<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    input: &Rowset,
    field: &str,
    limit: Option<usize>,
) -> Result<Rowset, StepError> {
    let values = input.rows.iter().filter_map(|row| row.get(field));
    let references: Vec<&Value> = values.flat_map(references).take(limit.unwrap_or(usize::MAX)).collect();
    let looked_up = read_references(reads, catalog, target, vec![field.into()], &references).await?;
    if looked_up.gone > 0 && references.len() == 1 {
        return Err(StepError::Missing { what: field.to_owned(), of: Some(format!("the API: no such {target}")) });
    }
    let rows: Vec<Arc<Row>> =
        references.iter().filter_map(|reference| looked_up.rows.find(reference).cloned()).collect();
    let has_wanted_rows = input.leading && looked_up.gone == 0 && limit.is_some_and(|limit| rows.len() >= limit);
    let gone = if looked_up.gone > 0 { Coverage::partial(PartialReason::Gone) } else { Coverage::Complete };
    let input_coverage = if has_wanted_rows { Coverage::Complete } else { input.coverage.clone() };
    let coverage = input_coverage.and(looked_up.coverage).and(gone);
    Ok(Rowset { rows, coverage, leading: input.leading, ..Rowset::default() })
}

/// Attaches the rows to which the references at a path refer. Rows are shared and not copied. A missing or dangling reference
/// has no attached row.
pub async fn attach(
    reads: &ReadContext<'_>,
    catalog: &Arc<Catalog>,
    entity: &str,
    path: &[SmolStr],
    view: &RowsView<'_>,
) -> Result<Rowset, StepError> {
    let walk = view.walk(path);
    let values = view.rows.rows.iter().filter_map(|row| walk.find(row));
    let references: Vec<&Value> = values.flat_map(references).collect();
    let looked_up = read_references(&reads.all_fields(), catalog, entity, path.to_vec(), &references).await?;
    let mut rows = view.rows.clone().with_coverage(&looked_up.coverage);
    rows.attached.push(Arc::new(looked_up.rows));
    Ok(rows)
}

/// Returns the references in a value: the value itself, or the items of a list. `null` is not a reference.
fn references(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Null => Box::new(std::iter::empty()),
        Value::Array(items) => Box::new(items.iter().filter(|item| !item.is_null())),
        one => Box::new(std::iter::once(one)),
    }
}

/// The result of reading the rows of references.
struct Lookup {
    rows: Attached,
    /// Complete if every reference was read; partial if the plan's bound was reached.
    coverage: Coverage,
    /// The number of references whose row does not exist.
    gone: usize,
}

/// Reads each distinct reference concurrently, within the plan's bound.
async fn read_references(
    reads: &ReadContext<'_>,
    catalog: &Arc<Catalog>,
    target: &str,
    path: Path,
    references: &[&Value],
) -> Result<Lookup, StepError> {
    let not_in_catalog = || StepError::Catalog(catalog.id.clone());
    let capability = catalog.get_of(target).ok_or_else(not_in_catalog)?;
    let key = &catalog.entity(target).ok_or_else(not_in_catalog)?.key;
    let mut known = HashSet::new();
    let distinct: Vec<&Value> = references.iter().copied().filter(|value| known.insert(ByValue(value))).collect();
    let call = |reference| read_reference(reads, Target { catalog, capability }, key, reference).boxed();
    let calls: Vec<_> = distinct.into_iter().map(call).collect();
    let mut answers = stream::iter(calls).buffer_unordered(reads.ctx.limits.calls_per_origin.max(1));
    let mut looked_up = Lookup { rows: Attached::new(path), coverage: Coverage::Complete, gone: 0 };
    while let Some((reference, answer)) = answers.try_next().await? {
        match answer {
            RowRead::Row(row) => looked_up.rows.insert(reference, Some(row)),
            RowRead::Gone => {
                looked_up.gone += 1;
                looked_up.rows.insert(reference, None);
            }
            RowRead::Forbidden => looked_up.coverage = Coverage::partial(PartialReason::Bound),
        }
    }
    Ok(looked_up)
}

/// The result of reading one row by key.
pub enum RowRead {
    Row(Arc<Row>),
    /// The API has no such row.
    Gone,
    /// The plan's bound was reached before this call.
    Forbidden,
}

async fn read_reference(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    key: &[String],
    reference: &Value,
) -> Result<(Value, RowRead), StepError> {
    Ok((reference.clone(), read_row(reads, target, &key_args(key, reference)).await?))
}

/// Reads one row by its key.
pub async fn read_row(reads: &ReadContext<'_>, target: Target<'_>, args: &Args) -> Result<RowRead, StepError> {
    match call::read(reads, target, args, ListPart::WHOLE).await {
        Ok(decoded) => Ok(decoded.rows.into_iter().next().map_or(RowRead::Gone, |row| RowRead::Row(Arc::new(row)))),
        Err(error) if error.is_not_found() => Ok(RowRead::Gone),
        Err(StepError::Bound { .. }) => Ok(RowRead::Forbidden),
        Err(error) => Err(error),
    }
}

/// Returns the arguments of a `get` call for a reference. A reference is a scalar or an object with the key parts.
pub fn key_args(key: &[String], reference: &Value) -> Args {
    match (key, reference) {
        ([only], scalar) if !scalar.is_object() => Args::from([(only.clone(), scalar.clone())]),
        (parts, reference) => {
            parts.iter().map(|part| (part.clone(), reference.get(part).cloned().unwrap_or(Value::Null))).collect()
        }
    }
}

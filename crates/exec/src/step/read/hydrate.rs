//! The hydrate step: it adds the fields that a list's rows lack, with one `get` call per row.
//! Invariant: rows stay in input order. A returned row has all requested fields. A row that no longer exists is left out and
//! makes the result partial.

use std::sync::Arc;

use catalog::Row;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::lookup::{RowRead, key_args, read_row};
use crate::call::{ReadContext, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;

pub async fn apply(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    fields: &[String],
    input: &Rowset,
) -> Result<Rowset, StepError> {
    let Target { catalog, capability } = target;
    let entity = catalog.entity(&capability.entity).ok_or_else(|| StepError::Catalog(catalog.id.clone()))?;
    let reads = &ReadContext { fields: Some(fields), ..*reads };
    let call = |row| hydrate_row(reads, target, &entity.key, fields, row).boxed();
    let calls: Vec<_> = input.rows.iter().map(call).collect();
    let mut answers = stream::iter(calls).buffered(reads.ctx.limits.calls_per_origin.max(1));
    let mut all = input.with_rows(Vec::with_capacity(input.rows.len()));
    while let Some(answer) = answers.try_next().await? {
        match answer {
            RowRead::Row(row) => all.rows.push(row),
            RowRead::Gone => all.coverage = all.coverage.and(Coverage::partial(PartialReason::Gone)),
            RowRead::Forbidden => {
                all.coverage = all.coverage.and(Coverage::partial(PartialReason::Bound));
                break;
            }
        }
    }
    Ok(all)
}

async fn hydrate_row(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    key: &[String],
    fields: &[String],
    row: &Arc<Row>,
) -> Result<RowRead, StepError> {
    let key_of_row = key.iter().filter_map(|part| Some((part.clone(), row.get(part)?.clone()))).collect();
    let args = key_args(key, &Value::Object(key_of_row));
    let complete_row = match read_row(reads, target, &args).await? {
        RowRead::Row(complete_row) => complete_row,
        other => return Ok(other),
    };
    let mut row = Row::clone(row);
    for field in fields {
        row.insert(field.clone(), complete_row.get(field).cloned().unwrap_or_default());
    }
    Ok(RowRead::Row(Arc::new(row)))
}

//! Adds to the input's rows the fields that their list did not carry, with one `get` per row.
//! Invariant: the order is the input's; a row that is gone by now is left out and reported; a row is never half read.

use std::sync::Arc;

use catalog::Row;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::lookup::{RowRead, by_key, key_args};
use crate::call::{Reads, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;

pub async fn apply(
    reads: &Reads<'_>,
    target: Target<'_>,
    fields: &[String],
    input: &Rowset,
) -> Result<Rowset, StepError> {
    let Target { catalog, capability } = target;
    let entity = catalog.entity(&capability.entity).ok_or_else(|| StepError::Catalog(catalog.id.clone()))?;
    let reads = &Reads { fields: Some(fields), ..*reads };
    let call = |row| one(reads, target, &entity.key, fields, row).boxed();
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

async fn one(
    reads: &Reads<'_>,
    target: Target<'_>,
    key: &[String],
    fields: &[String],
    row: &Arc<Row>,
) -> Result<RowRead, StepError> {
    let args =
        key_args(key, &Value::Object(key.iter().filter_map(|k| Some((k.clone(), row.get(k)?.clone()))).collect()));
    let complete_row = match by_key(reads, target, &args).await? {
        RowRead::Row(complete_row) => complete_row,
        other => return Ok(other),
    };
    let mut row = Row::clone(row);
    for field in fields {
        row.insert(field.clone(), complete_row.get(field).cloned().unwrap_or_default());
    }
    Ok(RowRead::Row(Arc::new(row)))
}

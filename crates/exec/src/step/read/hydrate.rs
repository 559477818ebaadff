//! The input's rows with the fields that their list did not carry, read by a get for each.
//! Invariant: the order is the input's; a row that is gone by now is left out and told; a row is never half read.

use std::sync::Arc;

use catalog::Row;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::lookup::{Read, by_key, key_args};
use crate::call::{Reads, Target};
use crate::coverage::{Coverage, Why};
use crate::error::StepError;
use crate::outcome::Rowset;

pub async fn apply(
    reads: &Reads<'_>,
    target: Target<'_>,
    fields: &[String],
    input: &Rowset,
) -> Result<Rowset, StepError> {
    let (catalog, capability) = target;
    let entity = catalog.entity(&capability.entity).ok_or_else(|| StepError::Catalog(catalog.id.clone()))?;
    let reads = &Reads { fields: Some(fields), ..*reads };
    let call = |row| one(reads, target, (&entity.key, fields), row).boxed();
    let calls: Vec<_> = input.rows.iter().map(call).collect();
    let mut answers = stream::iter(calls).buffered(reads.ctx.limits.calls_per_origin.max(1));
    let mut all = input.keep(Vec::with_capacity(input.rows.len()));
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Read::Row(row) => all.rows.push(row),
            Read::Gone => all.coverage = all.coverage.and(Coverage::partial(Why::Gone)),
            Read::Forbidden => {
                all.coverage = all.coverage.and(Coverage::partial(Why::Bound));
                break;
            }
        }
    }
    Ok(all)
}

async fn one(
    reads: &Reads<'_>,
    target: Target<'_>,
    (key, fields): (&[String], &[String]),
    row: &Arc<Row>,
) -> Result<Read, StepError> {
    let args =
        key_args(key, &Value::Object(key.iter().filter_map(|k| Some((k.clone(), row.get(k)?.clone()))).collect()));
    let whole = match by_key(reads, target, &args).await? {
        Read::Row(whole) => whole,
        other => return Ok(other),
    };
    let mut row = Row::clone(row);
    for field in fields {
        row.insert(field.clone(), whole.get(field).cloned().unwrap_or_default());
    }
    Ok(Read::Row(Arc::new(row)))
}

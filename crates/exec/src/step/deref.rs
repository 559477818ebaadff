//! The entity that a field of each input row refers to.
//! Invariant: each distinct reference is read once; a row without one gives nothing; the order is the input's.

use std::collections::HashMap;

use catalog::{Args, Capability, Catalog, Row};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::call;
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;

/// What is followed, to what.
pub struct Hop<'a> {
    pub target: &'a str,
    pub field: &'a str,
    pub limit: Option<usize>,
}

pub async fn apply(ctx: &Ctx<'_>, catalog: &Catalog, hop: &Hop<'_>, input: &Rowset) -> Result<Rowset, StepError> {
    let lacking = || StepError::Catalog(catalog.id.clone());
    let capability = catalog.get_of(hop.target).ok_or_else(lacking)?;
    let key = &catalog.entity(hop.target).ok_or_else(lacking)?.key;
    let references: Vec<&Value> = input
        .rows
        .iter()
        .filter_map(|row| row.get(hop.field))
        .filter(|value| !value.is_null())
        .take(hop.limit.unwrap_or(usize::MAX))
        .collect();
    let mut distinct: HashMap<String, Args> = HashMap::new();
    for reference in &references {
        distinct.entry(reference.to_string()).or_insert_with(|| key_args(key, reference));
    }
    let calls = distinct.into_iter().map(|(name, args)| read_one(ctx, catalog, capability, (name, args)));
    let found: HashMap<String, Row> =
        stream::iter(calls).buffer_unordered(ctx.limits.calls_per_origin).try_collect().await?;
    let rows = references.iter().filter_map(|reference| found.get(&reference.to_string()).cloned()).collect();
    Ok(Rowset { rows, coverage: input.coverage.clone() })
}

async fn read_one(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    (name, args): (String, Args),
) -> Result<(String, Row), StepError> {
    let decoded = call::read(ctx, catalog, capability, &args, None).await?;
    Ok((name, decoded.rows.into_iter().next().unwrap_or_default()))
}

fn key_args(key: &[String], reference: &Value) -> Args {
    match (key, reference) {
        ([only], scalar) if !scalar.is_object() => Args::from([(only.clone(), scalar.clone())]),
        (parts, reference) => {
            parts.iter().map(|part| (part.clone(), reference.get(part).cloned().unwrap_or(Value::Null))).collect()
        }
    }
}

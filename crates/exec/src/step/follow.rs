//! A declared relation from each input row.
//! Invariant: rows come out in the order of the rows they belong to, whatever order the answers came in.

use catalog::{Args, Catalog, Entity, Relation, Row, Via};
use futures::{StreamExt, TryStreamExt, stream};

use super::deref;
use crate::coverage::{Coverage, Why};
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging;

/// What is followed, from what.
pub struct Hop<'a> {
    pub parent: &'a str,
    pub relation: &'a str,
    pub args: &'a Args,
    pub limit: Option<usize>,
    /// Calls that the plan allows for each input row.
    pub pages: usize,
}

pub async fn apply(ctx: &Ctx<'_>, catalog: &Catalog, hop: &Hop<'_>, input: &Rowset) -> Result<Rowset, StepError> {
    let lacking = || StepError::Catalog(catalog.id.clone());
    let parent = catalog.entity(hop.parent).ok_or_else(lacking)?;
    let relation = parent.relations.get(hop.relation).ok_or_else(lacking)?;
    match &relation.via {
        Via::Key { field } => {
            let hop = deref::Hop { target: &relation.target, field, limit: hop.limit };
            deref::apply(ctx, catalog, &hop, input).await
        }
        Via::Embedded { .. } => Ok(embedded(hop, input)),
        Via::Call { .. } => lists(ctx, catalog, (parent, relation), hop, input).await,
    }
}

/// Rows that came with the input's own payload: no call.
fn embedded(hop: &Hop<'_>, input: &Rowset) -> Rowset {
    let held = input.rows.iter().filter_map(|row| row.get(hop.relation)?.as_array());
    let rows = held.flatten().filter_map(|row| row.as_object().cloned());
    let rows: Vec<Row> = rows.take(hop.limit.unwrap_or(usize::MAX)).collect();
    let enough = hop.limit.is_some_and(|limit| rows.len() >= limit);
    Rowset { rows, coverage: if enough { Coverage::Complete } else { input.coverage.clone() } }
}

async fn lists(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    (parent, relation): (&Entity, &Relation),
    hop: &Hop<'_>,
    input: &Rowset,
) -> Result<Rowset, StepError> {
    let Via::Call { capability, fill } = &relation.via else {
        return Ok(Rowset::default());
    };
    let capability = catalog.capability(capability).ok_or_else(|| StepError::Catalog(catalog.id.clone()))?;
    // A row that cannot fill the scope leads nowhere; without the scope the API would answer with everything.
    let args_of = |row: &Row| -> Option<Args> {
        let mut args = hop.args.clone();
        for (param, field) in fill {
            let value = match field {
                Some(field) => row.get(field).cloned(),
                None => parent.reference(row),
            };
            args.insert(param.clone(), value.filter(|v| !v.is_null())?);
        }
        Some(args)
    };
    let calls = input.rows.iter().filter_map(args_of).map(|args| async move {
        let want = paging::Want { rows: hop.limit, pages: hop.pages };
        paging::list(ctx, catalog, capability, &args, want).await
    });
    let mut lists = stream::iter(calls).buffered(ctx.limits.calls_per_origin);
    let mut all = Rowset { rows: Vec::new(), coverage: input.coverage.clone() };
    while let Some(list) = lists.try_next().await? {
        all.rows.extend(list.rows);
        all.coverage = all.coverage.and(list.coverage);
        if hop.limit.is_some_and(|limit| all.rows.len() >= limit) {
            break;
        }
        if all.rows.len() > ctx.limits.rows {
            all.coverage = all.coverage.and(Coverage::partial(Why::RowBudget));
            break;
        }
    }
    let allowed = hop.limit.unwrap_or(ctx.limits.rows).min(ctx.limits.rows);
    if hop.limit.is_some_and(|limit| all.rows.len() >= limit && limit <= ctx.limits.rows) {
        all.coverage = Coverage::Complete;
    }
    all.rows.truncate(allowed);
    Ok(all)
}

//! One kind of step, one file; the match is only a table.
//! Invariant: a step reads its input rowset and the API, and nothing else.

mod deref;
mod follow;
mod get;
mod limit;
mod project;
mod query;

use std::sync::Arc;

use catalog::{Capability, Catalog};
use lang::plan::{Called, Plan, Step, StepKind};

use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::Want;

pub async fn run(ctx: &Ctx<'_>, plan: &Plan, step: &Step, input: &Rowset) -> Result<Rowset, StepError> {
    match &step.kind {
        StepKind::Query { call, args, limit, .. } => {
            let (catalog, capability) = called(ctx, call)?;
            query::apply(ctx, catalog, capability, &known(args), Want { rows: *limit, pages: step.calls }).await
        }
        StepKind::Get { call, args } => {
            let (catalog, capability) = called(ctx, call)?;
            get::apply(ctx, catalog, capability, &known(args)).await
        }
        StepKind::Follow { input: from, relation, args, limit, .. } => {
            let from = plan.steps.get(*from);
            let of = from.and_then(|s| s.of.as_ref()).ok_or(StepError::NotRows)?;
            // The plan's bound is so many calls for each row it may start from.
            let pages = (step.calls / from.map_or(1, |s| s.rows.max(1))).max(1);
            let hop = follow::Hop { parent: &of.entity, relation, args: &known(args), limit: *limit, pages };
            follow::apply(ctx, catalog_of(ctx, &of.catalog)?, &hop, input).await
        }
        StepKind::Deref { field, limit, .. } => {
            let of = step.of.as_ref().ok_or(StepError::NotRows)?;
            let hop = deref::Hop { target: &of.entity, field, limit: *limit };
            deref::apply(ctx, catalog_of(ctx, &of.catalog)?, &hop, input).await
        }
        StepKind::Project { columns, .. } => Ok(project::apply(input, columns)),
        StepKind::Limit { count, .. } => Ok(limit::apply(input, *count)),
        other => Err(StepError::NotRun(other.word())),
    }
}

fn catalog_of<'c>(ctx: &Ctx<'c>, id: &base::CatalogId) -> Result<&'c Arc<Catalog>, StepError> {
    ctx.catalogs.get(id).ok_or_else(|| StepError::Catalog(id.clone()))
}

fn called<'c>(ctx: &Ctx<'c>, call: &Called) -> Result<(&'c Arc<Catalog>, &'c Capability), StepError> {
    let catalog = catalog_of(ctx, &call.catalog)?;
    let capability = catalog.capability(&call.capability).ok_or_else(|| StepError::Catalog(call.catalog.clone()))?;
    Ok((catalog, capability))
}

fn known(args: &lang::plan::Args) -> catalog::Args {
    args.iter().filter_map(|(name, value)| Some((name.clone(), value.known()?.clone()))).collect()
}

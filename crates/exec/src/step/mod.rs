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
use lang::plan::{Plan, Step, StepKind};

use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::Want;

pub async fn run(ctx: &Ctx<'_>, plan: &Plan, step: &Step, input: &Rowset) -> Result<Rowset, StepError> {
    let catalog = ctx.catalogs.get(&step.catalog).ok_or_else(|| StepError::Catalog(step.catalog.clone()))?;
    match &step.kind {
        StepKind::Query { capability, args, limit } => {
            query::apply(ctx, catalog, named(catalog, capability)?, args, Want { rows: *limit, pages: step.calls })
                .await
        }
        StepKind::Get { capability, args } => get::apply(ctx, catalog, named(catalog, capability)?, args).await,
        StepKind::Follow { input: from, relation, args, limit } => {
            let from = plan.steps.get(*from);
            let parent = from.map(|s| s.entity.as_str()).unwrap_or_default();
            // The plan's bound is so many calls for each row it may start from.
            let pages = (step.calls / from.map_or(1, |s| s.rows.max(1))).max(1);
            let hop = follow::Hop { parent, relation, args, limit: *limit, pages };
            follow::apply(ctx, catalog, &hop, input).await
        }
        StepKind::Deref { field, limit, .. } => {
            deref::apply(ctx, catalog, &deref::Hop { target: &step.entity, field, limit: *limit }, input).await
        }
        StepKind::Project { columns, .. } => Ok(project::apply(input, columns)),
        StepKind::Limit { count, .. } => Ok(limit::apply(input, *count)),
    }
}

fn named<'c>(catalog: &'c Arc<Catalog>, capability: &str) -> Result<&'c Capability, StepError> {
    catalog.capability(capability).ok_or_else(|| StepError::Catalog(catalog.id.clone()))
}

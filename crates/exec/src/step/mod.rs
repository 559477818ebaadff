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

pub async fn run(ctx: &Ctx<'_>, plan: &Plan, step: &Step, input: &Rowset) -> Result<Rowset, StepError> {
    let catalog = ctx.catalogs.get(&step.catalog).ok_or_else(|| StepError::Catalog(step.catalog.clone()))?;
    match &step.kind {
        StepKind::Query { capability, args, limit } => {
            query::apply(ctx, catalog, named(catalog, capability)?, args, *limit).await
        }
        StepKind::Get { capability, args } => get::apply(ctx, catalog, named(catalog, capability)?, args).await,
        StepKind::Follow { input: from, relation, args, limit } => {
            let parent = plan.steps.get(*from).map(|s| s.entity.as_str()).unwrap_or_default();
            let hop = follow::Hop { parent, relation, args, limit: *limit };
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

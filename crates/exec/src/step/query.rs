//! A list that the API filters.
//! Invariant: what `.limit` asked for is read and no page more.

use catalog::{Args, Capability, Catalog};

use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging;

pub async fn apply(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    limit: Option<usize>,
) -> Result<Rowset, StepError> {
    paging::list(ctx, catalog, capability, args, limit).await
}

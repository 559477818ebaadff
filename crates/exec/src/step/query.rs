//! A list that the API filters.
//! Invariant: what `.limit` asked for is read and no page more.

use catalog::{Args, Capability, Catalog};

use crate::error::StepError;
use crate::paging;
use crate::run::{Ctx, Rowset};

pub async fn apply(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    limit: Option<usize>,
) -> Result<Rowset, StepError> {
    paging::list(ctx, catalog, capability, args, limit).await
}

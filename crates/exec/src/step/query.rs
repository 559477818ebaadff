//! A list that the API filters.
//! Invariant: what `.limit` asked for is read and no page more, and no more calls than the plan said.

use catalog::{Args, Capability, Catalog};

use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, Want};

pub async fn apply(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    want: Want,
) -> Result<Rowset, StepError> {
    paging::list(ctx, catalog, capability, args, want).await
}

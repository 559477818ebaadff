//! One row by its key.
//! Invariant: a row that is not there is an error that says so, never an empty result.

use catalog::{Args, Capability, Catalog};

use crate::call;
use crate::coverage::Coverage;
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;

pub async fn apply(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
) -> Result<Rowset, StepError> {
    let decoded = call::read(ctx, catalog, capability, args, None).await?;
    Ok(Rowset { rows: decoded.rows, coverage: Coverage::Complete })
}

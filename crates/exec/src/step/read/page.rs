//! Reads on in a list that an earlier run left unfinished.
//! Invariant: no row is returned twice and none is skipped.

use crate::call::Reads;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, ListLimits};
use crate::step::called;

pub async fn apply(reads: &Reads<'_>, handle: &str, want: ListLimits) -> Result<Rowset, StepError> {
    let from = reads.ctx.pages.and_then(|pages| pages.get(handle));
    let from = from.ok_or_else(|| StepError::NoPage(handle.to_owned()))?.clone();
    let target = called(reads.ctx, &from.call)?;
    paging::read_on(reads, target, from, want).await
}

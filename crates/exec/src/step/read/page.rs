//! The rest of a list that an earlier run left unread.
//! Invariant: no row of it is given twice and none is passed over.

use crate::call::Reads;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, Want};
use crate::step::called;

pub async fn apply(reads: &Reads<'_>, handle: &str, want: Want) -> Result<Rowset, StepError> {
    let from = reads.ctx.pages.and_then(|pages| pages.get(handle));
    let from = from.ok_or_else(|| StepError::NoPage(handle.to_owned()))?.clone();
    let (catalog, capability) = called(reads.ctx, &from.call)?;
    paging::read_on(reads, (catalog, capability), from, want).await
}

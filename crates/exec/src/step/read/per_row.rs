//! The reading of one list for each input row.
//! Invariant: lists are in the order of their input rows. An unfinished list makes the result partial, and the rows after it no
//! longer count as leading.

use catalog::Args;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::call::{ReadContext, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, ListLimits};

/// Reads one list for each set of arguments, concurrently. `wanted.pages` limits each list; `wanted.rows` limits the rows of
/// all lists together.
pub async fn read_lists(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    args_per_row: Vec<Args>,
    input: &Rowset,
    wanted: ListLimits,
) -> Result<Rowset, StepError> {
    let is_only_list = args_per_row.len() == 1;
    let budget = paging::allowed_rows(reads);
    let allowed = wanted.rows.unwrap_or(budget).min(budget);
    let list = |args| async move { paging::read_list(reads, target, &args, wanted).await }.boxed();
    let calls: Vec<_> = args_per_row.into_iter().map(list).collect();
    let mut lists = stream::iter(calls).buffered(reads.ctx.limits.calls_per_origin.max(1));
    let mut all = Rowset { coverage: input.coverage.clone(), leading: input.leading, ..Rowset::default() };
    while let Some(list) = lists.try_next().await? {
        all.rows.extend(list.rows);
        // The requested rows are complete if no row before them is missing, even if later lists have further rows.
        if wanted.rows.is_some_and(|limit| limit <= budget && all.rows.len() >= limit) && all.leading {
            all.coverage = Coverage::Complete;
            break;
        }
        all.leading &= list.coverage == Coverage::Complete || is_only_list;
        all.coverage = all.coverage.and(list.coverage);
        if is_only_list {
            // A continuation is a position in one list, so the result of several lists has no continuation.
            all.rest = list.rest;
        }
        if all.rows.len() > allowed || (all.rows.len() == allowed && wanted.rows.is_some()) {
            let reason = if budget < reads.ctx.limits.rows { PartialReason::Bound } else { PartialReason::RowBudget };
            if wanted.rows.is_none_or(|limit| limit > budget) {
                all.coverage = all.coverage.and(Coverage::partial(reason));
            }
            break;
        }
    }
    all.rows.truncate(allowed);
    Ok(all)
}

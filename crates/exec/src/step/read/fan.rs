//! Reads one list for each of several rows.
//! Invariant: lists come out in the order of their rows; a list that was cut is reported, and the rows after it no
//! longer count as leading.

use catalog::Args;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::call::{Reads, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, ListLimits};

/// Reads the lists concurrently. `want.pages` applies to each list, `want.rows` to all of them together.
pub async fn lists(
    reads: &Reads<'_>,
    target: Target<'_>,
    each: Vec<Args>,
    input: &Rowset,
    want: ListLimits,
) -> Result<Rowset, StepError> {
    let alone = each.len() == 1;
    let budget = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    let allowed = want.rows.unwrap_or(budget).min(budget);
    let one = |args| async move { paging::list(reads, target, &args, want).await }.boxed();
    let calls: Vec<_> = each.into_iter().map(one).collect();
    let mut lists = stream::iter(calls).buffered(reads.ctx.limits.calls_per_origin.max(1));
    let mut all = Rowset { coverage: input.coverage.clone(), leading: input.leading, ..Rowset::default() };
    while let Some(list) = lists.try_next().await? {
        all.rows.extend(list.rows);
        if want.rows.is_some_and(|limit| limit <= budget && all.rows.len() >= limit) && all.leading {
            all.coverage = Coverage::Complete;
            break;
        }
        all.leading &= list.coverage == Coverage::Complete || alone;
        all.coverage = all.coverage.and(list.coverage);
        if alone {
            all.rest = list.rest;
        }
        if all.rows.len() > allowed || (all.rows.len() == allowed && want.rows.is_some()) {
            let cut = if budget < reads.ctx.limits.rows { PartialReason::Bound } else { PartialReason::RowBudget };
            if want.rows.is_none_or(|limit| limit > budget) {
                all.coverage = all.coverage.and(Coverage::partial(cut));
            }
            break;
        }
    }
    all.rows.truncate(allowed);
    Ok(all)
}

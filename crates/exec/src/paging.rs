//! A list over its pages, within the session's budgets.
//! Invariant: a list that stopped early says why; an API that never ends is stopped by the page budget.

use catalog::{After, Args, Asked, Capability, Catalog, PageAt, PageRequest, Row};

use crate::call;
use crate::coverage::{Coverage, Why};
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;

/// How much of a list is wanted, and what it may cost.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub rows: Option<usize>,
    /// Calls, as the plan said.
    pub pages: usize,
}

/// Reads until the list is complete, the rows wanted are there, or a budget is spent.
pub async fn list(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    Want { rows: want, pages }: Want,
) -> Result<Rowset, StepError> {
    let rows_allowed = ctx.limits.rows;
    let target = want.unwrap_or(rows_allowed).min(rows_allowed);
    let Some(paging) = &capability.paging else {
        let decoded = call::read(ctx, catalog, capability, args, None).await?;
        return Ok(cut(decoded.rows, want, rows_allowed, Coverage::Complete));
    };
    // One page size for the whole list: page numbers mean nothing otherwise.
    let size = paging.size.as_ref().map_or(0, |s| s.max.min(target.max(1)));
    let mut page = PageRequest { at: PageAt::First, size };
    let mut rows: Vec<Row> = Vec::new();
    let mut coverage = Coverage::partial(Why::PageBudget);
    for _ in 0..pages.min(ctx.limits.pages) {
        let asked = Asked { page: &page, seen: rows.len() };
        let decoded = call::read(ctx, catalog, capability, args, Some(asked)).await?;
        rows.extend(decoded.rows);
        match decoded.after {
            After::End => coverage = Coverage::Complete,
            After::Lost => coverage = Coverage::Unknown,
            After::Next(_) if rows.len() >= target => {
                let asked_for = want.is_some_and(|w| w <= target);
                coverage = if asked_for { Coverage::Complete } else { Coverage::partial(Why::RowBudget) };
            }
            After::Next(at) => {
                page = PageRequest { at, size };
                continue;
            }
        }
        break;
    }
    Ok(cut(rows, want, rows_allowed, coverage))
}

fn cut(mut rows: Vec<Row>, want: Option<usize>, allowed: usize, coverage: Coverage) -> Rowset {
    let coverage = match want {
        Some(want) if want <= allowed && rows.len() >= want => Coverage::Complete,
        _ if rows.len() > allowed => coverage.and(Coverage::partial(Why::RowBudget)),
        _ => coverage,
    };
    rows.truncate(want.unwrap_or(allowed).min(allowed));
    Rowset { rows, coverage }
}

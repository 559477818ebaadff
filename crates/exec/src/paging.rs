//! A list over its pages, within the session's budgets.
//! Invariant: a list that stopped early says why; an API that never ends is stopped by the page budget.

use catalog::{Args, Capability, Catalog, PageRequest, Paging};

use crate::call;
use crate::coverage::{Coverage, Why};
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;

/// Reads until the list is complete, `want` rows are there, or a budget is spent.
pub async fn list(
    ctx: &Ctx<'_>,
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    want: Option<usize>,
) -> Result<Rowset, StepError> {
    let rows_allowed = ctx.limits.rows;
    let target = want.unwrap_or(rows_allowed).min(rows_allowed);
    let Some(Paging::Page { size, .. }) = &capability.paging else {
        let decoded = call::read(ctx, catalog, capability, args, None).await?;
        return Ok(cut(decoded.rows, want, rows_allowed, Coverage::Complete));
    };
    // One page size for the whole list: page numbers mean nothing otherwise.
    let page_size = size.as_ref().map(|s| s.max.min(target.max(1)));
    let mut rows = Vec::new();
    let mut coverage = Coverage::partial(Why::PageBudget);
    for index in 0..ctx.limits.pages as u64 {
        let page = PageRequest { index, size: page_size.unwrap_or(0) };
        let decoded = call::read(ctx, catalog, capability, args, Some(page)).await?;
        let found = decoded.rows.len();
        rows.extend(decoded.rows);
        let ended = match (decoded.total, page_size) {
            (Some(total), _) if rows.len() as u64 >= total => Some(Coverage::Complete),
            // It promised more and gave nothing: what is missing, nobody knows.
            (Some(_), _) if found == 0 => Some(Coverage::Unknown),
            (Some(_), _) => None,
            (None, Some(size)) if found < size => Some(Coverage::Complete),
            (None, _) if found == 0 => Some(Coverage::Complete),
            (None, _) => None,
        };
        if let Some(ended) = ended {
            coverage = ended;
            break;
        }
        if rows.len() >= target {
            coverage =
                if want.is_some_and(|w| w <= target) { Coverage::Complete } else { Coverage::partial(Why::RowBudget) };
            break;
        }
    }
    Ok(cut(rows, want, rows_allowed, coverage))
}

fn cut(mut rows: Vec<catalog::Row>, want: Option<usize>, allowed: usize, coverage: Coverage) -> Rowset {
    let coverage = match want {
        Some(want) if want <= allowed && rows.len() >= want => Coverage::Complete,
        _ if rows.len() > allowed => coverage.and(Coverage::partial(Why::RowBudget)),
        _ => coverage,
    };
    rows.truncate(want.unwrap_or(allowed).min(allowed));
    Rowset { rows, coverage }
}

//! Reads a list over its pages, within the session's budgets and the plan's bounds.
//! Invariant: a list that stopped early says why and where it goes on; an API that never ends is stopped by the page
//! budget.

use std::sync::Arc;

use catalog::{Args, NextPage, PagePosition, PageRequest, RequestedPage, Row, RowWindow};
use lang::plan::CapabilityRef;

use crate::call::{self, Part, Reads, Target};
use crate::continuation::Continuation;
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;

/// How many rows and pages of a list are wanted.
#[derive(Debug, Clone, Copy)]
pub struct ListLimits {
    pub rows: Option<usize>,
    pub page_size: Option<usize>,
    /// The number of calls that the plan allows.
    pub pages: usize,
}

/// Reads until the list is complete, the wanted rows are read, or a budget is spent.
pub async fn list(reads: &Reads<'_>, target: Target<'_>, args: &Args, want: ListLimits) -> Result<Rowset, StepError> {
    let allowed = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    let rows = want.rows.unwrap_or(allowed).min(allowed);
    let page = target.capability.paging.as_ref().map(|paging| {
        // The page size must stay the same for the whole list, or page numbers would skip or repeat rows.
        let size = paging.size.as_ref().map_or(0, |s| s.max.min(want.page_size.unwrap_or(rows).max(1)));
        PageRequest { at: PagePosition::First, size }
    });
    let call = CapabilityRef { catalog: target.catalog.id.clone(), capability: target.capability.name.as_str().into() };
    let from = Continuation { call, args: args.clone(), page, skip: 0, seen: 0 };
    read_on(reads, target, from, want).await
}

/// Reads on from a position in a list.
pub async fn read_on(
    reads: &Reads<'_>,
    target: Target<'_>,
    from: Continuation,
    want: ListLimits,
) -> Result<Rowset, StepError> {
    let allowed = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    let mut list = ListReader {
        rows: Vec::new(),
        wanted: want.rows.unwrap_or(allowed).min(allowed),
        position: from,
        end: None,
        visited_pages: Vec::new(),
    };
    for _ in 0..want.pages.min(reads.ctx.limits.pages) {
        if list.end.is_some() || list.rows.len() >= list.wanted {
            break;
        }
        match list.page(reads, target).await {
            Err(StepError::Bound { .. }) => {
                list.end = Some(Coverage::partial(PartialReason::Bound));
                break;
            }
            other => other?,
        }
    }
    Ok(list.rowset(want.rows, allowed == reads.ctx.limits.rows))
}

/// A list that is being read, page by page.
struct ListReader {
    rows: Vec<Row>,
    /// How many rows to read.
    wanted: usize,
    /// The position of the next page.
    position: Continuation,
    /// How the list ended, once it has.
    end: Option<Coverage>,
    /// Pages that were read. An API that leads back to one of them would otherwise be read for ever.
    visited_pages: Vec<PagePosition>,
}

impl ListReader {
    async fn page(&mut self, reads: &Reads<'_>, target: Target<'_>) -> Result<(), StepError> {
        let page = self.position.page.as_ref().map(|page| RequestedPage { page, rows_before: self.position.seen });
        let skip = self.position.skip;
        let room = self.wanted - self.rows.len();
        // An API may send far more rows than requested. Rows beyond the wanted number are counted but not built.
        let part = Part { page, rows: RowWindow { skip, take: room } };
        let decoded = call::read(reads, target, &self.position.args, part).await?;
        let came = decoded.row_count;
        self.rows.extend(decoded.rows.into_iter().skip(skip.saturating_sub(decoded.skipped)).take(room));
        if came > skip + room {
            // The rest of this page is read later, by requesting the same page again and skipping these rows.
            self.position.skip = skip + room;
            return Ok(());
        }
        self.position.skip = 0;
        self.position.seen += came;
        match decoded.next {
            NextPage::End => self.end = Some(Coverage::Complete),
            NextPage::Lost => self.end = Some(Coverage::Unknown),
            NextPage::At(at) if self.visited_pages.contains(&at) => self.end = Some(Coverage::Unknown),
            NextPage::At(at) => {
                self.visited_pages.push(at.clone());
                let size = self.position.page.as_ref().map_or(0, |page| page.size);
                self.position.page = Some(PageRequest { at, size });
            }
        }
        Ok(())
    }

    /// Returns the rows with their coverage. `by_session` tells whether the session's limit or the plan's bound was
    /// the smaller one.
    fn rowset(self, limit: Option<usize>, by_session: bool) -> Rowset {
        let full = self.rows.len() >= self.wanted;
        let over = matches!(self.end, Some(Coverage::Complete | Coverage::Unknown));
        let coverage = match self.end {
            _ if full && limit.is_some_and(|limit| limit <= self.wanted) => Coverage::Complete,
            Some(end) => end,
            None if full && by_session => Coverage::partial(PartialReason::RowBudget),
            None if full => Coverage::partial(PartialReason::Bound),
            None => Coverage::partial(PartialReason::PageBudget),
        };
        let rest = (!over).then(|| Arc::new(self.position));
        Rowset { rows: self.rows.into_iter().map(Arc::new).collect(), coverage, rest, ..Rowset::default() }
    }
}

//! The reading of a list page by page, within the session's budgets and the plan's bounds.
//! Invariant: an unfinished list has a reason in its coverage and a continuation. The page budget ends the reading of an
//! endless list.

use std::sync::Arc;

use catalog::{Args, NextPage, PagePosition, PageRequest, RequestedPage, Row, RowWindow};
use lang::plan::CapabilityRef;

use crate::call::{self, ListPart, ReadContext, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::{Continuation, Rowset};

/// The limits of one read of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListLimits {
    /// The number of rows that the program requests; `None` for all rows.
    pub rows: Option<usize>,
    /// The page size that the program requests; `None` for the largest useful size.
    pub page_size: Option<usize>,
    /// The number of calls that the plan allows for the list.
    pub pages: usize,
}

/// Reads a list from its start, until the list ends, the requested rows are read, or a budget is used up.
pub async fn read_list(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    args: &Args,
    wanted: ListLimits,
) -> Result<Rowset, StepError> {
    let allowed = allowed_rows(reads);
    let rows = wanted.rows.unwrap_or(allowed).min(allowed);
    let page = target.capability.paging.as_ref().map(|paging| {
        // The page size stays the same for the whole list. With another page size, page numbers would skip or repeat rows.
        let size = paging.size.as_ref().map_or(0, |s| s.max.min(wanted.page_size.unwrap_or(rows).max(1)));
        PageRequest { at: PagePosition::First, size }
    });
    let call = CapabilityRef { catalog: target.catalog.id.clone(), capability: target.capability.name.as_str().into() };
    let from = Continuation { call, args: args.clone(), page, skip: 0, seen: 0 };
    continue_list(reads, target, from, wanted).await
}

/// Continues a list from a position.
pub async fn continue_list(
    reads: &ReadContext<'_>,
    target: Target<'_>,
    from: Continuation,
    wanted: ListLimits,
) -> Result<Rowset, StepError> {
    let allowed = allowed_rows(reads);
    let mut list = ListReader {
        rows: Vec::new(),
        wanted: wanted.rows.unwrap_or(allowed).min(allowed),
        position: from,
        end: None,
        visited_pages: Vec::new(),
    };
    for _ in 0..wanted.pages.min(reads.ctx.limits.pages) {
        if list.end.is_some() || list.rows.len() >= list.wanted {
            break;
        }
        match list.read_page(reads, target).await {
            Err(StepError::Bound { .. }) => {
                list.end = Some(Coverage::partial(PartialReason::Bound));
                break;
            }
            other => other?,
        }
    }
    Ok(list.into_rowset(wanted.rows, allowed == reads.ctx.limits.rows))
}

/// Returns the largest number of rows that a step may return: the smaller of the session's limit and the plan's bound.
pub fn allowed_rows(reads: &ReadContext<'_>) -> usize {
    reads.ctx.limits.rows.min(reads.allowance.rows.max(1))
}

/// A list that is being read, page by page.
struct ListReader {
    /// The rows that were read so far.
    rows: Vec<Row>,
    /// The largest number of rows to read.
    wanted: usize,
    /// The position of the next page.
    position: Continuation,
    /// The final coverage. `None` while the list can still be read further.
    end: Option<Coverage>,
    /// The page positions that the API has named so far. An API that names one of them again would otherwise use up the page
    /// budget in a cycle.
    visited_pages: Vec<PagePosition>,
}

impl ListReader {
    /// Reads one page and advances the position.
    async fn read_page(&mut self, reads: &ReadContext<'_>, target: Target<'_>) -> Result<(), StepError> {
        let page = self.position.page.as_ref().map(|page| RequestedPage { page, rows_before: self.position.seen });
        let skip = self.position.skip;
        let room = self.wanted - self.rows.len();
        // An API may send far more rows than requested. Rows beyond the limit are counted but not decoded.
        let part = ListPart { page, rows: RowWindow { skip, take: room } };
        let decoded = call::read(reads, target, &self.position.args, part).await?;
        let received = decoded.row_count;
        self.rows.extend(decoded.rows.into_iter().skip(skip.saturating_sub(decoded.skipped)).take(room));
        if received > skip + room {
            // A later read continues inside this page: it requests the same page again and skips the returned rows. APIs have
            // no position inside a page.
            self.position.skip = skip + room;
            return Ok(());
        }
        self.position.skip = 0;
        self.position.seen += received;
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

    /// Returns the rows with their coverage. `by_session` is true if the session's limit, and not the plan's bound, limits the
    /// rows.
    fn into_rowset(self, limit: Option<usize>, by_session: bool) -> Rowset {
        let has_wanted_rows = self.rows.len() >= self.wanted;
        let is_read_to_its_end = matches!(self.end, Some(Coverage::Complete | Coverage::Unknown));
        let coverage = match self.end {
            _ if has_wanted_rows && limit.is_some_and(|limit| limit <= self.wanted) => Coverage::Complete,
            Some(end) => end,
            None if has_wanted_rows && by_session => Coverage::partial(PartialReason::RowBudget),
            None if has_wanted_rows => Coverage::partial(PartialReason::Bound),
            None => Coverage::partial(PartialReason::PageBudget),
        };
        let rest = (!is_read_to_its_end).then(|| Arc::new(self.position));
        Rowset { rows: self.rows.into_iter().map(Arc::new).collect(), coverage, rest, ..Rowset::default() }
    }
}

//! A list over its pages, within the session's budgets and the plan's bounds.
//! Invariant: a list that stopped early says why and where it goes on; an API that never ends is stopped by the page budget.

use std::sync::Arc;

use catalog::{After, Args, Asked, PageAt, PageRequest, Row, Window};
use lang::plan::CapabilityRef;

use crate::call::{self, Part, Reads, Target};
use crate::continuation::Continuation;
use crate::coverage::{Coverage, Why};
use crate::error::StepError;
use crate::outcome::Rowset;

/// How much of a list is wanted, and what it may cost.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub rows: Option<usize>,
    pub page_size: Option<usize>,
    /// Calls, as the plan said.
    pub pages: usize,
}

/// Reads until the list is complete, the rows wanted are there, or a budget is spent.
pub async fn list(reads: &Reads<'_>, target: Target<'_>, args: &Args, want: Want) -> Result<Rowset, StepError> {
    let allowed = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    let rows = want.rows.unwrap_or(allowed).min(allowed);
    let page = target.1.paging.as_ref().map(|paging| {
        // One page size for the whole list: page numbers mean nothing otherwise.
        let size = paging.size.as_ref().map_or(0, |s| s.max.min(want.page_size.unwrap_or(rows).max(1)));
        PageRequest { at: PageAt::First, size }
    });
    let call = CapabilityRef { catalog: target.0.id.clone(), capability: target.1.name.as_str().into() };
    let from = Continuation { call, args: args.clone(), page, skip: 0, seen: 0 };
    read_on(reads, target, from, want).await
}

/// Reads on from a place in a list.
pub async fn read_on(
    reads: &Reads<'_>,
    target: Target<'_>,
    from: Continuation,
    want: Want,
) -> Result<Rowset, StepError> {
    let allowed = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    let mut list = Reading {
        rows: Vec::new(),
        wanted: want.rows.unwrap_or(allowed).min(allowed),
        at: from,
        end: None,
        been: Vec::new(),
    };
    for _ in 0..want.pages.min(reads.ctx.limits.pages) {
        if list.end.is_some() || list.rows.len() >= list.wanted {
            break;
        }
        match list.page(reads, target).await {
            Err(StepError::Bound { .. }) => {
                list.end = Some(Coverage::partial(Why::Bound));
                break;
            }
            other => other?,
        }
    }
    Ok(list.rowset(want.rows, allowed == reads.ctx.limits.rows))
}

struct Reading {
    rows: Vec<Row>,
    wanted: usize,
    /// What is read next.
    at: Continuation,
    /// How the list ended, once it has.
    end: Option<Coverage>,
    /// Pages that were read: an API that leads back to one of them would be read for ever.
    been: Vec<PageAt>,
}

impl Reading {
    async fn page(&mut self, reads: &Reads<'_>, target: Target<'_>) -> Result<(), StepError> {
        let page = self.at.page.as_ref().map(|page| Asked { page, seen: self.at.seen });
        let skip = self.at.skip;
        let room = self.wanted - self.rows.len();
        // An API may send far more rows than were asked for: those without room are not even built.
        let part = Part { page, rows: Window { skip, take: room } };
        let decoded = call::read(reads, target, &self.at.args, part).await?;
        let came = decoded.came;
        self.rows.extend(decoded.rows.into_iter().skip(skip.saturating_sub(decoded.skipped)).take(room));
        if came > skip + room {
            // The rest of this page is read with it, another time.
            self.at.skip = skip + room;
            return Ok(());
        }
        self.at.skip = 0;
        self.at.seen += came;
        match decoded.after {
            After::End => self.end = Some(Coverage::Complete),
            After::Lost => self.end = Some(Coverage::Unknown),
            After::Next(at) if self.been.contains(&at) => self.end = Some(Coverage::Unknown),
            After::Next(at) => {
                self.been.push(at.clone());
                let size = self.at.page.as_ref().map_or(0, |page| page.size);
                self.at.page = Some(PageRequest { at, size });
            }
        }
        Ok(())
    }

    fn rowset(self, limit: Option<usize>, by_session: bool) -> Rowset {
        let full = self.rows.len() >= self.wanted;
        let over = matches!(self.end, Some(Coverage::Complete | Coverage::Unknown));
        let coverage = match self.end {
            _ if full && limit.is_some_and(|limit| limit <= self.wanted) => Coverage::Complete,
            Some(end) => end,
            None if full && by_session => Coverage::partial(Why::RowBudget),
            None if full => Coverage::partial(Why::Bound),
            None => Coverage::partial(Why::PageBudget),
        };
        let rest = (!over).then(|| Arc::new(self.at));
        Rowset { rows: self.rows.into_iter().map(Arc::new).collect(), coverage, rest, ..Rowset::default() }
    }
}

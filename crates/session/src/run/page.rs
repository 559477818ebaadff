//! Page handles: where a list that a run left unfinished goes on.
//! Invariant: a handle belongs to its session. A handle with another session's slot is refused, and the error names
//! the right one.

use std::collections::BTreeMap;

use access::Caller;
use base::{LogicalSessionId, Slot};
use exec::{Continuation, Coverage, Outcome, ReturnResult};
use lang::plan::{Plan, StepKind};
use ports::store::{Key, Table};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::load::{Session, Versioned};
use crate::rows::RunRow;
use crate::run_result::PageHandle;
use crate::service::Service;

/// A handle such as `s0_pg3` or `s0_o1`: a slot, a kind and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandleName {
    pub slot: Slot,
    pub number: u64,
}

impl HandleName {
    pub fn parse(text: &str, kind: &str) -> Option<Self> {
        let (slot, rest) = text.trim().trim_matches('`').split_once('_')?;
        let number = rest.strip_prefix(kind)?.parse().ok()?;
        Some(Self { slot: slot.parse().ok()?, number })
    }
}

/// Where a list goes on, and the columns and entity its result had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PageRow {
    #[serde(flatten)]
    pub from: Continuation,
    #[serde(default)]
    pub columns: Vec<String>,
    #[serde(default)]
    pub entity: String,
}

/// A result that stopped before the end of its list.
pub(super) struct UnreadList {
    pub label: String,
    pub page: PageRow,
    /// The steps of the program that were not applied to the rest of the list.
    pub unapplied_steps: Option<String>,
}

/// Returns the results that stopped before the end of their lists.
pub(super) fn unread_lists(plan: &Plan, outcome: &Outcome) -> Vec<UnreadList> {
    let rest = |(finished, returned): (&ReturnResult, &lang::plan::PlanResult)| {
        // A complete result with a limit needs no page handle, unless the program reads a list page by page.
        let goes_on = |coverage: &Coverage| *coverage != Coverage::Complete || is_page(plan, returned.step);
        let rowset = finished.result.as_ref().ok().filter(|rowset| goes_on(&rowset.coverage))?;
        let from = rowset.rest.as_ref()?.as_ref().clone();
        let page = PageRow { from, columns: finished.columns.clone(), entity: finished.entity.clone() };
        Some(UnreadList { label: finished.label.clone(), page, unapplied_steps: unapplied_steps(plan, returned.step) })
    };
    outcome.returns.iter().zip(&plan.returns).filter_map(rest).collect()
}

fn is_page(plan: &Plan, result: usize) -> bool {
    plan.steps.get(result).is_some_and(|step| matches!(step.kind, StepKind::Page { .. }))
}

/// Returns the steps between the read and the result that change rows, apart from choosing columns. Reading on would
/// skip them.
fn unapplied_steps(plan: &Plan, result: usize) -> Option<String> {
    let (mut words, mut at) = (Vec::new(), Some(result));
    while let Some(step) = at.and_then(|at| plan.steps.get(at)) {
        if !step.kind.calls_api() && !matches!(step.kind, StepKind::Project { .. }) {
            words.push(step.kind.word());
        }
        at = step.kind.input();
    }
    words.reverse();
    words.dedup();
    (!words.is_empty()).then(|| words.join(" and "))
}

/// Returns the page handles of a run, as its caller sees them.
pub(super) fn page_handles(slot: Slot, row: &RunRow) -> Vec<PageHandle> {
    let shown = |(label, number): &(String, u64)| PageHandle {
        label: label.clone(),
        handle: format!("{slot}_pg{number}"),
        unapplied_steps: row.unapplied_steps.get(number).cloned(),
    };
    row.pages.iter().map(shown).collect()
}

/// Gives the rest of a list the columns and entity of its first part.
pub(super) fn restore_columns(pages: &BTreeMap<String, PageRow>, plan: &Plan, outcome: &mut Outcome) {
    for (finished, returned) in outcome.returns.iter_mut().zip(&plan.returns) {
        let Some(StepKind::Page { handle, .. }) = plan.steps.get(returned.step).map(|step| &step.kind) else {
            continue;
        };
        let Some(page) = pages.get(handle).filter(|page| !page.columns.is_empty()) else { continue };
        finished.columns.clone_from(&page.columns);
        finished.entity.clone_from(&page.entity);
    }
}

pub(crate) fn page_key(caller: &Caller, session: &Session, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Page, format!("{}/{number:010}", session.id))
}

impl Service {
    /// Returns the continuations that a plan reads on from.
    pub(super) async fn pages_of(
        &self,
        caller: &Caller,
        session: &Session,
        plan: &Plan,
    ) -> Result<BTreeMap<String, PageRow>, Error> {
        let mut found = BTreeMap::new();
        for step in &plan.steps {
            let StepKind::Page { handle, .. } = &step.kind else { continue };
            let unknown = || Error::NoHandle(base::printable(handle, 60));
            let parsed = HandleName::parse(handle, "pg").ok_or_else(unknown)?;
            check_slot(session, parsed.slot, handle)?;
            let Some(row) = self.page_row(caller, session, parsed.number).await? else {
                let pages = self.logical(caller, session.id).await?.map_or(0, |row| row.row.pages);
                let was_there = (1..=pages).contains(&parsed.number);
                return Err(if was_there { self.expired_error(handle) } else { unknown() });
            };
            found.insert(handle.clone(), row.row);
        }
        Ok(found)
    }

    /// Returns a page row by its number. The first pages of a fork are stored under the session it was forked from.
    async fn page_row(
        &self,
        caller: &Caller,
        session: &Session,
        number: u64,
    ) -> Result<Option<Versioned<PageRow>>, Error> {
        let key = |id: LogicalSessionId| Key::new(&caller.tenant, Table::Page, format!("{id}/{number:010}"));
        let (mut id, mut forked) = (session.id, session.logical.row.forked);
        loop {
            if let Some(row) = self.fetch(&key(id)).await? {
                return Ok(Some(row));
            }
            let Some(from) = forked.filter(|from| number <= from.pages) else { return Ok(None) };
            id = from.session;
            forked = self.logical(caller, id).await?.and_then(|found| found.row.forked);
        }
    }
}

/// A handle with another slot's prefix is probably a typing mistake, and following it would read another session's
/// list.
pub(super) fn check_slot(session: &Session, slot: Slot, handle: &str) -> Result<(), Error> {
    if slot == session.slot {
        return Ok(());
    }
    let right = handle.split_once('_').map(|(_, rest)| format!("{}_{rest}", session.slot)).unwrap_or_default();
    Err(Error::ForeignHandle { handle: base::printable(handle, 60), right })
}

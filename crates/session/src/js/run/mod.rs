//! `run_js` and questions about its runs.
//! Invariant: an answer names a run only after the run is stored; a run of another tenant appears not to exist.

mod accept;
mod calls;
mod cancel;
mod drive;
mod end;
mod fast_path;
mod fetch;
mod fetch_receipt;
mod park;
mod queue;
mod resume;
mod takeover;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{ExecutionId, Timestamp};
use drive::Start;
use fast_path::FastStart;
use ports::store::{Range, Table};

use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{Execution, ExecutionState, PendingReview, RunJsRequest};
use crate::error::Error;
use crate::error::JsError;
use crate::list_page::{ListRequest, PageBuilder};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The number of rows that a list of executions reads at a time. Each may hold a large result.
const SCANNED_AT_ONCE: usize = 50;

impl Service {
    /// Runs a script and waits for its end, or until `wait_ms` has passed.
    pub async fn run_js(self: &Arc<Self>, caller: &Caller, asked: &RunJsRequest) -> Result<Execution, Error> {
        let settings = &self.js()?.settings;
        let wait = Duration::from_millis(asked.wait_ms.unwrap_or(settings.wait_ms).min(settings.most_timeout_ms));
        let (id, row) = self.check_run(caller, asked).await?;
        if row.state.is_final() {
            return Ok(view(id, &row));
        }
        if let Some(id_cell) = &asked.id_cell {
            // The cell keeps its first value if the call is repeated.
            let _ = id_cell.set(id);
        }
        let began = self.now();
        let at_once = match wait > fast_path::FAST_PATH_LIMIT {
            true => self.try_fast_path(caller, id, &row).await?,
            false => FastStart::Queue(None),
        };
        let live = match at_once {
            FastStart::Stored(live) => live,
            FastStart::Queue(turn) => {
                // Spawned, so that a caller that leaves at this moment leaves a run that is stored and driven.
                let (service, caller_too) = (self.clone(), caller.clone());
                let begins = async move {
                    let at = service.accept(&caller_too, id, row, turn).await?;
                    service.spawn_driver(&caller_too.tenant, id, at, Start::Accepted)
                };
                let begun = tokio::spawn(tracing::Instrument::in_current_span(begins)).await;
                match begun.map_err(|_| Error::Lost)?? {
                    Some(live) => live,
                    None => return self.execution(caller, &id.to_string()).await,
                }
            }
        };
        let waited = u64::try_from(self.now().0.saturating_sub(began.0)).unwrap_or(0);
        let wait = wait.saturating_sub(Duration::from_millis(waited));
        let row = live.settled(self.ports.clock.as_ref(), wait, &self.js()?.shutdown).await;
        Ok(self.with_stall_warning(view(id, &row)))
    }

    /// Answers every caller that waits for a run with the run's present state. The runs are stored, so this process
    /// or another one continues them later.
    pub fn release_waiters(&self) {
        if let Some(js) = &self.js {
            js.shutdown.cancel();
        }
    }

    /// Adds the reason why a run makes no progress, if it is known.
    fn with_stall_warning(&self, mut execution: Execution) -> Execution {
        let held =
            self.js.as_ref().filter(|_| !execution.state.is_final()).and_then(|js| js.stall_reason(execution.id));
        if let Some(why) = held {
            let told = format!("the run cannot be stored, which is retried until its time limit ({why})");
            execution.warning = Some(execution.warning.map_or(told.clone(), |warning| format!("{warning}; {told}")));
        }
        execution
    }

    /// Returns one run by its id.
    pub async fn execution(&self, caller: &Caller, id: &str) -> Result<Execution, Error> {
        let (id, found) = self.execution_row(caller, id).await?;
        Ok(self.with_stall_warning(view(id, &found.row)))
    }

    /// Returns executions after a given one, the newest first, and the last of them if there are more. A list is as long as the
    /// limits on lists allow.
    pub async fn executions_page(
        &self,
        caller: &Caller,
        after: Option<ExecutionId>,
        limit: usize,
    ) -> Result<(Vec<Execution>, Option<ExecutionId>), Error> {
        self.js()?;
        let mut found = PageBuilder::new(&self.limits, &ListRequest { after: None, limit: Some(limit) });
        let mut after = after.map(|id| id.to_newest_first_key());
        loop {
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::Execution,
                prefix: String::new(),
                after: after.take(),
                limit: SCANNED_AT_ONCE,
            };
            let rows = self.ports.store.scan(&range).await?;
            for (key, row) in &rows {
                let id = ExecutionId::from_newest_first_key(key).map_err(|_| Error::Damaged(key.clone()))?;
                let read = rows::read::<ExecutionRow>(key, &row.value)?;
                if self.is_hidden(caller, Some(&read.principal)) {
                    continue;
                }
                let session = read.session.as_ref().map(|name| self.shown_name(caller, name));
                found.push(key, row.value.len(), Execution { session, ..view(id, &read) });
            }
            match rows.last() {
                Some((last, _)) if rows.len() == SCANNED_AT_ONCE && !found.is_full() => after = Some(last.clone()),
                _ => break,
            }
        }
        let page = found.finish(0);
        let next = page.next.and_then(|key| ExecutionId::from_newest_first_key(&key).ok());
        Ok((page.rows, next))
    }

    /// Returns executions after a given one, the newest first.
    pub async fn executions(
        &self,
        caller: &Caller,
        after: Option<ExecutionId>,
        limit: usize,
    ) -> Result<Vec<Execution>, Error> {
        Ok(self.executions_page(caller, after, limit).await?.0)
    }

    pub(crate) async fn execution_row(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(ExecutionId, Versioned<ExecutionRow>), Error> {
        self.js()?;
        let unknown = || JsError::NoExecution(id.chars().take(80).collect());
        let id = ExecutionId::parse(id.trim()).map_err(|_| unknown())?;
        let found: Option<Versioned<ExecutionRow>> = self.fetch(&execution_key(&caller.tenant, id)).await?;
        let found = found.filter(|found| !self.is_hidden(caller, Some(&found.row.principal)));
        Ok((id, found.ok_or_else(unknown)?))
    }

    /// Ends a run, whichever process drives it.
    pub async fn cancel_execution(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let (id, mut found) = self.execution_row(caller, id).await?;
        loop {
            if found.row.state.is_final() {
                return Err(JsError::Ended { id, state: found.row.state.as_str() }.into());
            }
            let next = ended(&found.row, ExecutionState::Cancelled, self.now());
            let (tenant, at) = (&caller.tenant, &found);
            let ending = end::EndRequest { tenant, id, at, next, heap: None, pieces: Vec::new(), began: None };
            match self.end(ending).await? {
                end::EndOutcome::Done(_) | end::EndOutcome::Moved => break,
                end::EndOutcome::Changed(now) => found = now,
            }
        }
        if let Some(live) = self.js()?.lives.get(id) {
            live.end();
        }
        Ok(())
    }
}

/// Returns the row of an ended run, without the data that only an active run needs.
fn ended(row: &ExecutionRow, state: ExecutionState, now: Timestamp) -> ExecutionRow {
    ExecutionRow { state, ended: Some(now), parked: None, headers: Default::default(), ..row.clone() }
}

fn view(id: ExecutionId, row: &ExecutionRow) -> Execution {
    let owed = row.parked.iter().flat_map(|parked| &parked.owed);
    let review = |(commit, plan): &(String, String)| PendingReview { commit: commit.clone(), plan: plan.clone() };
    Execution {
        id,
        state: row.state,
        result: row.result.clone(),
        error: row.error.clone(),
        heap: row.heap,
        input_heap: row.input_heap,
        warning: row.warning.clone(),
        session: row.session.as_ref().map(|name| name.shown()),
        accepted: row.accepted,
        started: row.started,
        ended: row.ended,
        reviews: owed.filter_map(|owed| owed.review.as_ref()).map(review).collect(),
        output_bytes: row.output.bytes,
        output_lines: row.output.lines(),
        output_dropped: row.output.dropped,
        code: row.code.clone(),
    }
}

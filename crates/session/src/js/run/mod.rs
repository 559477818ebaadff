//! `run_js` and what is asked about its runs.
//! Invariant: an execution is answered only after it is accepted durably; another tenant's reads as none.

mod accept;
mod brief;
mod calls;
mod drive;
mod end;
mod fetch;
mod found;
mod given_up;
mod park;
mod queue;
mod resume;
mod within;

use std::sync::Arc;
use std::time::Duration;

use base::{ExecutionId, Timestamp};
use brief::AtOnce;
use drive::Start;
use ports::store::{Range, Table};

use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{Execution, Review, RunJs, State};
use crate::error::Error;
use crate::error::JsError;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::Caller;

impl Service {
    pub async fn run_js(self: &Arc<Self>, caller: &Caller, asked: &RunJs) -> Result<Execution, Error> {
        let settings = &self.js()?.settings;
        let wait = Duration::from_millis(asked.wait_ms.unwrap_or(settings.wait_ms).min(settings.most_timeout_ms));
        let (id, row) = self.checked(caller, asked).await?;
        if row.state.is_final() {
            return Ok(view(id, &row));
        }
        if let Some(became) = &asked.became {
            // A call that is asked for twice became the first one.
            let _ = became.set(id);
        }
        let began = self.now();
        let at_once = match wait > brief::BRIEF {
            true => self.begin_briefly(caller, id, &row).await?,
            false => AtOnce::No(None),
        };
        let live = match at_once {
            AtOnce::Begun(live) => live,
            AtOnce::No(turn) => {
                // Whoever leaves in this moment leaves a run that is stored: it is driven all the same.
                let (service, caller_too) = (self.clone(), caller.clone());
                let begins = async move {
                    let at = service.take(&caller_too, id, row, turn).await?;
                    service.begin(&caller_too.tenant, id, at, Start::Ours)
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
        let row = live.settled(self.ports.clock.as_ref(), wait, &self.js()?.ends).await;
        Ok(self.with_hindrance(view(id, &row)))
    }

    /// Tells whoever waits for a run how it stands. It is stored: another process, or this one when it is back, goes on with it.
    pub fn tell_who_waits(&self) {
        if let Some(js) = &self.js {
            js.ends.cancel();
        }
    }

    /// Says why a run that has not ended does not go on, where that is known here.
    fn with_hindrance(&self, mut execution: Execution) -> Execution {
        let held = self.js.as_ref().filter(|_| !execution.state.is_final()).and_then(|js| js.held(execution.id));
        if let Some(why) = held {
            let told = format!("the run cannot be stored, and is tried again until its time is up ({why})");
            execution.warning = Some(execution.warning.map_or(told.clone(), |warning| format!("{warning}; {told}")));
        }
        execution
    }

    pub async fn execution(&self, caller: &Caller, id: &str) -> Result<Execution, Error> {
        let (id, found) = self.execution_row(caller, id).await?;
        Ok(self.with_hindrance(view(id, &found.row)))
    }

    /// The newest first, after one of them.
    pub async fn executions(
        &self,
        caller: &Caller,
        after: Option<ExecutionId>,
        limit: usize,
    ) -> Result<Vec<Execution>, Error> {
        self.js()?;
        let range = Range {
            tenant: caller.tenant.clone(),
            table: Table::Execution,
            prefix: String::new(),
            after: after.map(|id| id.to_newest_first_key()),
            limit,
        };
        let mut found = Vec::new();
        for (key, row) in self.ports.store.scan(&range).await? {
            let id = ExecutionId::from_newest_first_key(&key).map_err(|_| Error::Damaged(key.clone()))?;
            found.push(view(id, &rows::read::<ExecutionRow>(&key, &row.value)?));
        }
        Ok(found)
    }

    pub(crate) async fn execution_row(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<(ExecutionId, Versioned<ExecutionRow>), Error> {
        self.js()?;
        let unknown = || JsError::NoExecution(id.chars().take(80).collect());
        let id = ExecutionId::parse(id.trim()).map_err(|_| unknown())?;
        let found = self.fetch(&execution_key(&caller.tenant, id)).await?;
        Ok((id, found.ok_or_else(unknown)?))
    }

    /// Ends a run, whoever has it.
    pub async fn cancel_execution(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let (id, mut found) = self.execution_row(caller, id).await?;
        loop {
            if found.row.state.is_final() {
                return Err(JsError::Ended { id, state: found.row.state.as_str() }.into());
            }
            let next = ended(&found.row, State::Cancelled, self.now());
            let (tenant, at) = (&caller.tenant, &found);
            let ending = end::Ending { tenant, id, at, next, heap: None, pieces: Vec::new(), began: None };
            match self.end(ending).await? {
                end::Ended::Done(_) | end::Ended::Moved => break,
                end::Ended::Changed(now) => found = now,
            }
        }
        if let Some(live) = self.js()?.lives.get(id) {
            live.end();
        }
        Ok(())
    }
}

/// The row of a run that is over, without what only a run under way needs.
fn ended(row: &ExecutionRow, state: State, now: Timestamp) -> ExecutionRow {
    ExecutionRow { state, ended: Some(now), parked: None, headers: Default::default(), ..row.clone() }
}

fn view(id: ExecutionId, row: &ExecutionRow) -> Execution {
    let owed = row.parked.iter().flat_map(|parked| &parked.owed);
    let review = |(commit, plan): &(String, String)| Review { commit: commit.clone(), plan: plan.clone() };
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

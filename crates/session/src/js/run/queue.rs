//! A run's turn in its session.
//! Invariant: a run starts when every run that was accepted before it in its session has ended, in any process.

use std::time::Duration;

use base::ExecutionId;

use super::accept::{input, queue_name};
use super::drive::ScriptRun;
use super::end::tenant_caller;
use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{ExecutionState, UncaughtError};
use crate::error::Error;
use crate::load::Versioned;

/// How often a queue is checked whose first run another process drives.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl ScriptRun {
    /// Waits for the run's turn and starts it. Returns false if the run was ended before.
    pub(super) async fn take_turn(&mut self) -> Result<bool, Error> {
        let Some(name) = self.at.row.session.clone() else { return self.start(None).await };
        let caller = tenant_caller(&self.tenant);
        let changes = self.service.js()?.notifier(&queue_name(&caller, &name));
        loop {
            // Subscribed before reading the queue, so that no change after the read is missed.
            let told = changes.notified();
            let session = self.service.js_session(&caller, &name).await?.row;
            match session.waiting.first() {
                Some(first) if *first == self.id => return self.start(session.head).await,
                Some(first) if session.waiting.contains(&self.id) => self.take_over_first(*first).await?,
                _ => {
                    self.refresh().await?;
                    if !self.at.row.state.is_final() {
                        let message = "its session was removed before it began".to_owned();
                        let error = UncaughtError { name: "AbortError".to_owned(), message, stack: String::new() };
                        self.finish(ExecutionState::Cancelled, Some(error), None).await?;
                    }
                    return Ok(false);
                }
            }
            tokio::select! {
                () = told => {}
                () = self.live.leave.cancelled() => {
                    self.refresh().await?;
                    return Ok(false);
                }
                () = self.service.ports.clock.sleep(LOOK_AGAIN) => {}
            }
        }
    }

    async fn start(&mut self, head: Option<base::Digest>) -> Result<bool, Error> {
        let row = &self.at.row;
        let next = ExecutionRow {
            state: ExecutionState::Running,
            started: Some(self.service.now()),
            input_heap: input(row.from, head),
            ..row.clone()
        };
        self.commit(next, None, Vec::new()).await
    }

    /// Takes over the first run of the queue if its process died, since the queue could not advance otherwise.
    async fn take_over_first(&self, first: ExecutionId) -> Result<(), Error> {
        if self.service.js()?.lives.get(first).is_some() {
            return Ok(());
        }
        let found: Option<Versioned<ExecutionRow>> = self.service.fetch(&execution_key(&self.tenant, first)).await?;
        if let Some(found) = found {
            self.service.take_over_run(&self.tenant, first, found).await?;
        }
        Ok(())
    }
}

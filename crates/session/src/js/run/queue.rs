//! A run's turn in its session.
//! Invariant: a run starts when every run that was accepted before it in its session has ended, in whichever process.

use std::time::Duration;

use base::ExecutionId;

use super::accept::{input, queue_name};
use super::drive::Run;
use super::end::of_tenant;
use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{State, Uncaught};
use crate::error::Error;
use crate::load::Versioned;

/// Between two looks at a queue whose first run another process has.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Run {
    /// Waits for its turn and starts it. False where it was ended before.
    pub(super) async fn take_turn(&mut self) -> Result<bool, Error> {
        let Some(name) = self.at.row.session.clone() else { return self.start(None).await };
        let caller = of_tenant(&self.tenant);
        let changes = self.service.js()?.changes_of(&queue_name(&caller, &name));
        loop {
            // Before the look: what changes after it is told.
            let told = changes.notified();
            let session = self.service.js_session(&caller, &name).await?.row;
            match session.waiting.first() {
                Some(first) if *first == self.id => return self.start(session.head).await,
                Some(first) if session.waiting.contains(&self.id) => self.look_after(*first).await?,
                _ => {
                    self.refresh().await?;
                    if !self.at.row.state.is_final() {
                        let message = "its session was removed before it began".to_owned();
                        let error = Uncaught { name: "AbortError".to_owned(), message, stack: String::new() };
                        self.finish(State::Cancelled, Some(error), None).await?;
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
            state: State::Running,
            started: Some(self.service.now()),
            input_heap: input(row.from, head),
            ..row.clone()
        };
        self.commit(next, None, Vec::new()).await
    }

    /// The first run of the queue may have lost its process: then it goes on here, or the queue would never move.
    async fn look_after(&self, first: ExecutionId) -> Result<(), Error> {
        if self.service.js()?.lives.get(first).is_some() {
            return Ok(());
        }
        let found: Option<Versioned<ExecutionRow>> = self.service.fetch(&execution_key(&self.tenant, first)).await?;
        if let Some(found) = found {
            self.service.take_up(&self.tenant, first, found).await?;
        }
        Ok(())
    }
}

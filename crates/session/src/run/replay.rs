//! Rebuilds the answer of an earlier run from its stored result.
//! Invariant: nothing runs and nothing is called; the answer is the recorded one.

use std::sync::Arc;

use access::Caller;
use exec::{Coverage, Outcome, ReturnResult, Rowset, StepError};

use super::page::page_handles;
use crate::error::Error;
use crate::load::Session;
use crate::run_result::RunResult;
use crate::service::Service;
use crate::uri::ResourceUri;

impl Service {
    /// Returns the stored result of a run, marked as a replay.
    pub(crate) async fn replay(
        &self,
        caller: &Caller,
        session: &Session,
        number: u64,
    ) -> Result<Arc<RunResult>, Error> {
        // The caller knows that the run existed, so a missing artifact has expired.
        let missing = || self.expired_error(&ResourceUri::run(session.slot, number));
        let (row, artifact) = self.artifact_at(caller, session.id, number).await?.ok_or_else(missing)?;
        let (pages, program) = (page_handles(session.slot, &row), row.program);
        let returns = artifact.returns.into_iter().map(|r| ReturnResult {
            label: r.label,
            entity: r.entity,
            columns: r.columns,
            long_columns: r.long_columns,
            effect: r.effect,
            result: match r.error {
                Some(error) => Err(Arc::new(StepError::Recorded(error))),
                None => Ok(Arc::new(Rowset {
                    coverage: r.coverage.unwrap_or(Coverage::Complete),
                    ..Rowset::complete(r.rows)
                })),
            },
        });
        let (returns, receipts, cancelled) = (returns.collect(), artifact.receipts, artifact.cancelled);
        let outcome = Outcome { returns, receipts, cancelled, step_times: Vec::new() };
        Ok(Arc::new(RunResult {
            slot: session.slot,
            plan: artifact.plan,
            program,
            notes: Vec::new(),
            outcome,
            number,
            run: artifact.run,
            pages,
            replayed: true,
        }))
    }
}

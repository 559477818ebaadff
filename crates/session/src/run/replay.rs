//! What an earlier run did, from what it left.
//! Invariant: nothing runs and nothing is called; the answer is the recorded one.

use std::sync::Arc;

use exec::{Coverage, Finished, Outcome, Rowset, StepError};

use super::page::more;
use crate::error::Error;
use crate::load::Session;
use crate::ran::Ran;
use crate::service::Service;
use crate::uri::ResourceUri;
use access::Caller;

impl Service {
    pub(crate) async fn replay(&self, caller: &Caller, session: &Session, number: u64) -> Result<Arc<Ran>, Error> {
        // Whoever asks knows that there was such a run.
        let missing = || self.gone(&ResourceUri::run(session.slot, number));
        let (row, artifact) = self.artifact_at(caller, session.id, number).await?.ok_or_else(missing)?;
        let (pages, program) = (more(session.slot, &row), row.program);
        let returns = artifact.returns.into_iter().map(|r| Finished {
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
        let outcome = Outcome { returns, receipts, cancelled, took: Vec::new() };
        Ok(Arc::new(Ran {
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

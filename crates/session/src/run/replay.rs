//! What an earlier run did, from what it left.
//! Invariant: nothing runs and nothing is called; the answer is the recorded one.

use std::sync::Arc;

use exec::{Coverage, Finished, Outcome, Rowset, StepError};

use super::page::more;
use crate::caller::Caller;
use crate::error::Error;
use crate::load::{Session, Versioned};
use crate::ran::Ran;
use crate::rows::{RunRow, run_key};
use crate::service::Service;
use crate::uri::ResourceUri;

impl Service {
    pub(super) async fn replay(&self, caller: &Caller, session: &Session, number: u64) -> Result<Arc<Ran>, Error> {
        let uri = ResourceUri::run(session.slot, number);
        let artifact = self.artifact(caller, &uri).await?;
        let row: Option<Versioned<RunRow>> = self.fetch(&run_key(&caller.tenant, session.id, number)).await?;
        let pages = row.as_ref().map(|found| more(session.slot, &found.row)).unwrap_or_default();
        let program = row.map(|found| found.row.program).unwrap_or_default();
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

//! Receipts in the store: one row for each effect, under its session and run.
//! Invariant: a receipt's row is committed before `open` returns; a closed receipt is never opened again.

use access::Caller;
use async_trait::async_trait;
use base::{LogicalSessionId, RunId};
use ports::receipts::{EffectIntent, Error, Receipt, Receipts, State};
use ports::store::{Batch, Expect, Key, Range, Table};

use super::operation::{OperationRow, operation_key};
use crate::commit::{TRIES, unchanged};
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::rows;
use crate::service::Service;

/// The receipts of one run.
pub(super) struct StoredReceipts<'a> {
    pub service: &'a Service,
    pub caller: &'a Caller,
    pub session: &'a Session,
    pub live: &'a LiveRun,
}

impl StoredReceipts<'_> {
    fn key(&self, intent: &EffectIntent) -> Key {
        let id = intent.id;
        // Numbers have a fixed width, so that rows are sorted in the order of the effects.
        let name = format!("{}/{}/{:06}/{:08}", self.session.id, id.run, id.step, id.row);
        Key::new(&self.caller.tenant, Table::Receipt, name)
    }

    /// Refuses further effects if another process has taken the run over.
    async fn check_owner(&self) -> Result<(), Error> {
        let Some(number) = self.live.operation() else { return Ok(()) };
        let key = operation_key(self.caller, self.session, number);
        let found: Option<Versioned<OperationRow>> = self.service.fetch(&key).await.map_err(ours)?;
        match found {
            Some(found) if !found.row.is_of(self.live) => {
                Err(Error::Unavailable("another process has taken the run over".into()))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Receipts for StoredReceipts<'_> {
    async fn open(&self, intent: &EffectIntent) -> Result<Option<Receipt>, Error> {
        self.check_owner().await?;
        let (store, key) = (&self.service.ports.store, self.key(intent));
        let value = rows::write(&Receipt::open(intent.clone()));
        match store.commit(Batch::default().put(key.clone(), value, Expect::Absent)).await {
            Ok(()) => return Ok(None),
            Err(ports::store::Error::Conflict(_)) => {}
            Err(error) => return Err(unavailable(error)),
        }
        let found: Option<Versioned<Receipt>> = self.service.fetch(&key).await.map_err(ours)?;
        let found = found.ok_or_else(|| Error::Unavailable("a receipt that is there cannot be read".into()))?;
        Ok(Some(found.row))
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), Error> {
        let key = self.key(&receipt.intent);
        for _ in 0..TRIES {
            let found: Option<Versioned<Receipt>> = self.service.fetch(&key).await.map_err(ours)?;
            // Two processes may close the receipt of one effect. A state that is less certain must not replace a more
            // certain one.
            if found.as_ref().is_some_and(|found| known(&found.row.state) > known(&receipt.state)) {
                return Ok(());
            }
            let version = found.map_or(0, |found| found.version);
            let batch = Batch::default().put(key.clone(), rows::write(receipt), unchanged(version));
            match self.service.ports.store.commit(batch).await {
                Err(ports::store::Error::Conflict(_)) => {}
                ended => return ended.map_err(unavailable),
            }
        }
        Err(ours(crate::Error::Busy))
    }
}

/// How certain a state is.
fn known(state: &State) -> u8 {
    match state {
        State::Open => 0,
        State::Unknown { .. } => 1,
        State::Failed { .. } => 2,
        State::Done => 3,
    }
}

fn ours(error: crate::Error) -> Error {
    Error::Unavailable(Box::new(error))
}

fn unavailable(error: ports::store::Error) -> Error {
    Error::Unavailable(Box::new(error))
}

/// More receipts than any plan allows.
const MOST: usize = 10_000;

impl Service {
    /// Returns the receipts of a run so far, in the order of its effects.
    pub(crate) async fn receipts_of(
        &self,
        caller: &Caller,
        session: LogicalSessionId,
        run: RunId,
    ) -> Result<Vec<Receipt>, crate::Error> {
        let range = Range {
            tenant: caller.tenant.clone(),
            table: Table::Receipt,
            prefix: format!("{session}/{run}/"),
            after: None,
            limit: MOST,
        };
        let found = self.ports.store.scan(&range).await?;
        found.iter().map(|(id, row)| rows::read(id, &row.value)).collect()
    }
}

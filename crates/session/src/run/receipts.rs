//! Receipts in the store: one row for each effect, under its session and run.
//! Invariant: a row is committed before `open` returns; a receipt that was closed is never opened again.

use async_trait::async_trait;
use base::{LogicalSessionId, RunId, TenantId};
use ports::Store;
use ports::receipts::{Error, Intent, Receipt, Receipts};
use ports::store::{Batch, Expect, Key, Range, Table};

use crate::caller::Caller;
use crate::rows;
use crate::service::Service;

/// Of one session.
pub(super) struct StoredReceipts<'a> {
    pub store: &'a dyn Store,
    pub tenant: &'a TenantId,
    pub session: LogicalSessionId,
}

impl StoredReceipts<'_> {
    fn key(&self, intent: &Intent) -> Key {
        let id = intent.id;
        // Numbers of one width, so that rows come back in the order of the effects.
        let name = format!("{}/{}/{:06}/{:08}", self.session, id.run, id.step, id.row);
        Key::new(self.tenant, Table::Receipt, name)
    }
}

#[async_trait]
impl Receipts for StoredReceipts<'_> {
    async fn open(&self, intent: &Intent) -> Result<Option<Receipt>, Error> {
        let key = self.key(intent);
        let value = rows::write(&Receipt::open(intent.clone()));
        match self.store.commit(Batch::default().put(key.clone(), value, Expect::Absent)).await {
            Ok(()) => return Ok(None),
            Err(ports::store::Error::Conflict(_)) => {}
            Err(error) => return Err(unavailable(error)),
        }
        let found = self.store.get(&key).await.map_err(unavailable)?;
        let found = found.ok_or_else(|| Error::Unavailable("a receipt that is there cannot be read".into()))?;
        serde_json::from_slice(&found.value).map(Some).map_err(|error| Error::Unavailable(Box::new(error)))
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), Error> {
        let batch = Batch::default().put(self.key(&receipt.intent), rows::write(receipt), Expect::Any);
        self.store.commit(batch).await.map_err(unavailable)
    }
}

fn unavailable(error: ports::store::Error) -> Error {
    Error::Unavailable(Box::new(error))
}

/// More than any plan may have.
const MOST: usize = 10_000;

impl Service {
    /// What a run has left so far, in the order of its effects.
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

//! Receipts in the store: one row for each effect, under its session and run.
//! Invariant: a receipt is opened only under the lease of its run (`lease.rs`), and before its request leaves. A closed receipt
//! is never opened again.

use std::collections::HashSet;
use std::sync::Mutex;

use access::Caller;
use async_trait::async_trait;
use base::{LogicalSessionId, RunId};
use ports::receipts::{EffectId, EffectIntent, Error, Opened, Receipt, Receipts, State};
use ports::store::{Batch, Expect, Key, Range, Table, Write};

use super::lease::UnderLease;
use crate::commit::{TRIES, unchanged};
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::rows;
use crate::service::Service;
use crate::sync::lock;

/// The receipts of one run.
pub(super) struct StoredReceipts<'a> {
    pub service: &'a Service,
    pub caller: &'a Caller,
    pub session: &'a Session,
    pub live: &'a LiveRun,
    /// An earlier process executed a part of the run and may have left receipts.
    pub is_continued: bool,
    /// The effects whose receipts this process has opened.
    pub opened: Mutex<HashSet<EffectId>>,
}

impl StoredReceipts<'_> {
    fn key(&self, id: &EffectId) -> Key {
        // Numbers have a fixed width, so that rows are sorted in the order of the effects.
        let name = format!("{}/{}/{:06}/{:08}", self.session.id, id.run, id.step, id.row);
        Key::new(&self.caller.tenant, Table::Receipt, name)
    }
}

#[async_trait]
impl Receipts for StoredReceipts<'_> {
    async fn earlier(&self, id: &EffectId) -> Result<Option<Receipt>, Error> {
        if !self.is_continued {
            return Ok(None);
        }
        let found: Option<Versioned<Receipt>> = self.service.fetch(&self.key(id)).await.map_err(ours)?;
        Ok(found.map(|found| found.row))
    }

    async fn open(&self, intent: &EffectIntent) -> Result<Opened, Error> {
        let is_first = lock(&self.opened).insert(intent.id) && !self.is_continued;
        let written = match is_first {
            true => self.open_first(intent).await,
            false => self.open_again(intent).await,
        };
        let written = written.map_err(ours)?;
        let (run, step, row) = (intent.id.run, intent.id.step, intent.id.row);
        tracing::debug!(%run, step, row, request = intent.request, outcome = ?written, "an effect is about to leave");
        Ok(match written {
            UnderLease::Written => Opened::Stored,
            UnderLease::Cancelled => Opened::Cancelled,
            UnderLease::Lost => Opened::TakenOver,
        })
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), Error> {
        let key = self.key(&receipt.intent.id);
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

impl StoredReceipts<'_> {
    /// Opens the receipt of an effect that was never begun. No version is required, because only the owner of the run opens
    /// receipts, and a repeated write has the same content.
    async fn open_first(&self, intent: &EffectIntent) -> Result<UnderLease, crate::Error> {
        let write = Write::Put {
            key: self.key(&intent.id),
            value: rows::write(&Receipt::open(intent.clone())),
            expect: Expect::Any,
        };
        self.service.write_under_lease(self.live, &[write]).await
    }

    /// Opens the receipt for a further departure of the same request. An earlier owner that was frozen may close the receipt with
    /// the answer that it got, which must not be overwritten.
    async fn open_again(&self, intent: &EffectIntent) -> Result<UnderLease, crate::Error> {
        let key = self.key(&intent.id);
        for _ in 0..TRIES {
            let found: Option<Versioned<Receipt>> = self.service.fetch(&key).await?;
            let is_certain = found.as_ref().is_some_and(|found| known(&found.row.state) > known(&State::Open));
            let write = match found {
                Some(found) if is_certain => Write::Check { key: key.clone(), expect: Expect::Version(found.version) },
                found => Write::Put {
                    key: key.clone(),
                    value: rows::write(&Receipt::open(intent.clone())),
                    expect: unchanged(found.map_or(0, |found| found.version)),
                },
            };
            match self.service.write_under_lease(self.live, &[write]).await {
                Err(crate::Error::Store(ports::store::Error::Conflict(changed))) if changed == key => {}
                written => return written,
            }
        }
        Err(crate::Error::Busy)
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

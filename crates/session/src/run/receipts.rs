//! Receipts in the store: one row for each effect, under its session and run.
//! Invariant: a receipt is opened only under the lease of its run (`lease.rs`), and before its request leaves. A closed receipt
//! is never opened again.

use std::collections::HashSet;
use std::sync::Mutex;

use access::Caller;
use async_trait::async_trait;
use base::{LogicalSessionId, RunId, TenantId};
use ports::receipts::{EffectId, EffectIntent, Error, Opened, Receipt, Receipts, State};
use ports::store::{Batch, Expect, Key, Range, Table, Write};

use super::lease::UnderLease;
use super::settle::SettlementRow;
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
        effect_key(&self.caller.tenant, Table::Receipt, self.session.id, id)
    }

    fn settlement_key(&self, id: &EffectId) -> Key {
        effect_key(&self.caller.tenant, Table::Settlement, self.session.id, id)
    }
}

/// Returns the key of a row of one effect: its receipt, or what a later look needs.
pub(super) fn effect_key(tenant: &TenantId, table: Table, session: LogicalSessionId, id: &EffectId) -> Key {
    // Numbers have a fixed width, so that rows are sorted in the order of the effects.
    Key::new(tenant, table, format!("{session}/{}/{:06}/{:08}", id.run, id.step, id.row))
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
        let mut receipt = receipt.clone();
        for _ in 0..TRIES {
            let found: Option<Versioned<Receipt>> = self.service.fetch(&key).await.map_err(ours)?;
            // Two processes may close the receipt of one effect. A state that is less certain must not replace a more
            // certain one.
            if found.as_ref().is_some_and(|found| found.row.state.certainty() > receipt.state.certainty()) {
                return Ok(());
            }
            let version = found.map_or(0, |found| found.version);
            let batch = Batch::default().put(key.clone(), rows::write(&receipt), unchanged(version));
            let mut batch = self.with_settlement(&receipt, batch).await.map_err(ours)?;
            // A process that lost the run does not know what its next owner sends, so only the owner may say that nothing happens.
            let lease = match receipt.state {
                State::Failed { .. } => {
                    let held = self.live.lease.lock().await;
                    batch = batch.check(held.key.clone(), Expect::Version(held.version));
                    Some(held.key.clone())
                }
                _ => None,
            };
            match self.service.ports.store.commit(batch).await {
                Err(ports::store::Error::Conflict(changed)) if lease == Some(changed.clone()) => {
                    if self.service.refresh_lease(self.live).await.map_err(ours)? == UnderLease::Lost
                        && let State::Failed { status, why } = receipt.state
                    {
                        receipt.state = State::Unknown { status, why };
                        receipt.settles = receipt.intent.settlement.is_some();
                    }
                }
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
        let put = |key, value| Write::Put { key, value, expect: Expect::Any };
        let mut writes = vec![put(self.key(&intent.id), rows::write(&Receipt::open(intent.clone())))];
        if let Some(settlement) = &intent.settlement {
            let row = SettlementRow::new(settlement, self.service.owners.me());
            writes.push(put(self.settlement_key(&intent.id), rows::write(&row)));
        }
        self.service.write_under_lease(self.live, &writes).await
    }

    /// Opens the receipt for a further departure of the same request. An earlier owner that was frozen may close the receipt with
    /// the answer that it got, which must not be overwritten.
    async fn open_again(&self, intent: &EffectIntent) -> Result<UnderLease, crate::Error> {
        let (key, settlement_key) = (self.key(&intent.id), self.settlement_key(&intent.id));
        for _ in 0..TRIES {
            let found: Option<Versioned<Receipt>> = self.service.fetch(&key).await?;
            let is_done = found.as_ref().is_some_and(|found| found.row.state == State::Done);
            let mut writes = match found {
                Some(found) if is_done => {
                    vec![Write::Check { key: key.clone(), expect: Expect::Version(found.version) }]
                }
                found => vec![Write::Put {
                    key: key.clone(),
                    value: rows::write(&Receipt::open(intent.clone())),
                    expect: unchanged(found.map_or(0, |found| found.version)),
                }],
            };
            if let Some(settlement) = intent.settlement.as_ref().filter(|_| !is_done) {
                let found: Option<Versioned<SettlementRow>> = self.service.fetch(&settlement_key).await?;
                let version = found.as_ref().map_or(0, |found| found.version);
                // An earlier owner that is frozen may still send its request, so it stays in the list.
                let row = match found {
                    Some(found) => found.row.with_sender(self.service.owners.me()),
                    None => SettlementRow::new(settlement, self.service.owners.me()),
                };
                let (key, value) = (settlement_key.clone(), rows::write(&row));
                writes.push(Write::Put { key, value, expect: unchanged(version) });
            }
            match self.service.write_under_lease(self.live, &writes).await {
                Err(crate::Error::Store(ports::store::Error::Conflict(changed)))
                    if changed == key || changed == settlement_key => {}
                written => return written,
            }
        }
        Err(crate::Error::Busy)
    }

    /// Adds to the batch that closes a receipt what becomes of its settlement: nothing is left of it if the outcome is certain, and
    /// otherwise this process sends the request no more.
    async fn with_settlement(&self, receipt: &Receipt, batch: Batch) -> Result<Batch, crate::Error> {
        let Some(settlement) = &receipt.intent.settlement else { return Ok(batch) };
        let key = self.settlement_key(&receipt.intent.id);
        if receipt.state.is_certain() {
            return Ok(batch.delete(key, Expect::Any));
        }
        let me = self.service.owners.me();
        let found: Option<Versioned<SettlementRow>> = self.service.fetch(&key).await?;
        let version = found.as_ref().map_or(0, |found| found.version);
        // A receipt of a version that stored no settlements has none yet. Its sender is not known and counts as this process.
        let row = found.map_or_else(|| SettlementRow::new(settlement, me), |found| found.row).without_sender(me);
        Ok(batch.put(key, rows::write(&row), unchanged(version)))
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

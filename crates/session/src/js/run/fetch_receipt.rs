//! The receipt of a request with an effect that a script sends by `fetch`.
//! Invariant: such a request leaves only after its receipt is stored, in one transaction with the check that the run still belongs
//! to this process and has not ended. A receipt that an earlier owner left open is `unknown`, never "not begun".

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use base::{ExecutionId, TenantId, Timestamp};
use durable::Lease;
use ports::receipts::State;
use ports::store::{self, Batch, Expect, Key, Range, Table, Write};
use ports::upstream::{DepartureCheck, Refused};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::drive::ScriptRun;
use crate::commit::{STORE_AGAIN, STORE_TRIES, TRIES};
use crate::engine::rows as js_rows;
use crate::error::Error;
use crate::rows;
use crate::service::Service;

/// How many receipts are read at a time.
const PAGE: usize = 500;

/// The receipt of one call of a script.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FetchReceiptRow {
    /// The method and address of the request, without query values.
    pub request: String,
    pub state: State,
    /// When the receipt was opened, immediately before the request left.
    pub opened: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Timestamp>,
}

/// Opens the receipt of one request when it is about to leave.
pub(super) struct FetchDeparture {
    pub service: Arc<Service>,
    pub tenant: TenantId,
    pub execution: ExecutionId,
    /// The number of the call in its run.
    pub call: u64,
    pub request: String,
    /// Cancelled when the run ends in this process.
    pub leave: CancellationToken,
    /// Whether the receipt is stored.
    pub is_opened: AtomicBool,
}

impl FetchDeparture {
    /// Returns the write that closes the receipt. `None` if the receipt was never opened.
    pub fn closing(&self, state: State) -> Option<Write> {
        if !self.is_opened.load(Ordering::Acquire) {
            return None;
        }
        let now = self.service.now();
        let row = FetchReceiptRow { request: self.request.clone(), state, opened: now, closed: Some(now) };
        Some(Write::Put { key: self.key(), value: rows::write(&row), expect: Expect::Any })
    }

    fn key(&self) -> Key {
        receipt_key(&self.tenant, self.execution, self.call)
    }

    /// Stores the receipt, if this process still owns the run. Returns false if it does not.
    async fn open(&self) -> Result<bool, Error> {
        let mut failures = 0;
        let store = &self.service.ports.store;
        let lease_key = js_rows::open_key(&self.tenant, self.execution);
        for _ in 0..TRIES {
            let Some(found) = store.get(&lease_key).await? else { return Ok(false) };
            let lease: Lease = rows::read(&lease_key.id, &found.value)?;
            if lease.owner != self.service.owners.me() {
                return Ok(false);
            }
            let row = FetchReceiptRow {
                request: self.request.clone(),
                state: State::Open,
                opened: self.service.now(),
                closed: None,
            };
            let batch = Batch::default()
                .put(self.key(), rows::write(&row), Expect::Any)
                .check(lease_key.clone(), Expect::Version(found.version));
            match store.commit(batch).await {
                Ok(()) => return Ok(true),
                Err(store::Error::Conflict(_)) => {}
                // The write is the same at each attempt, so one whose answer was lost may be repeated.
                Err(error) => {
                    failures += 1;
                    if failures == STORE_TRIES {
                        return Err(error.into());
                    }
                    self.service.ports.clock.sleep(STORE_AGAIN).await;
                }
            }
        }
        Err(Error::Busy)
    }
}

#[async_trait]
impl DepartureCheck for FetchDeparture {
    async fn may_leave(&self) -> Result<(), Refused> {
        if self.leave.is_cancelled() {
            return Err(Refused);
        }
        match self.open().await {
            Ok(true) => {
                self.is_opened.store(true, Ordering::Release);
                tracing::debug!(execution = %self.execution, call = self.call, request = self.request, "a request of a script is about to leave");
                Ok(())
            }
            Ok(false) => Err(Refused),
            Err(error) => {
                tracing::warn!(execution = %self.execution, call = self.call, %error, "the receipt of a request could not be stored, so it was not sent");
                Err(Refused)
            }
        }
    }
}

impl ScriptRun {
    /// Reads the receipts that the earlier owner left, after this process has become the owner. Open ones become `unknown`.
    pub(super) async fn read_earlier_receipts(&mut self) -> Result<(), Error> {
        let store = self.service.ports.store.clone();
        let (mut after, mut interrupted, mut closing) = (None, HashSet::new(), Batch::default());
        loop {
            let prefix = format!("{}/", self.id.to_newest_first_key());
            let (tenant, table) = (self.tenant.clone(), Table::FetchReceipt);
            let page = store.scan(&Range { tenant, table, prefix, after: after.take(), limit: PAGE }).await?;
            for (id, found) in &page {
                let row: FetchReceiptRow = rows::read(id, &found.value)?;
                let Some(call) = id.rsplit_once('/').and_then(|(_, call)| call.parse().ok()) else { continue };
                interrupted.insert(call);
                if row.state == State::Open {
                    let why = "the server stopped while this request was under way".to_owned();
                    let state = State::Unknown { status: None, why };
                    let row = FetchReceiptRow { state, closed: Some(self.moment()), ..row };
                    let key = receipt_key(&self.tenant, self.id, call);
                    closing = closing.put(key, rows::write(&row), Expect::Version(found.version));
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => break,
            }
        }
        if !closing.writes.is_empty() {
            // The earlier owner may close a receipt at this moment, which it then does with what it knows.
            self.service.try_commit(closing).await?;
        }
        self.interrupted = interrupted;
        Ok(())
    }
}

fn receipt_key(tenant: &TenantId, execution: ExecutionId, call: u64) -> Key {
    Key::new(tenant, Table::FetchReceipt, format!("{}/{call:010}", execution.to_newest_first_key()))
}

//! Receipts that settle later: an effect whose answer was lost is looked for again after its request has ended.
//! Invariant: a receipt is closed as failed only after two conclusive looks that found nothing, each at least one settle time after
//! the end of the request and of the look before it, by the monotonic clock of the process that looks. A frozen process may still
//! send its request, so the time begins only when every process that may send it has ended the request or is dead.
//!
//! Every process watches the rows. The version of a row changes with each look, and each process begins to wait again when it does,
//! so one of them looks in one settle time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{InstanceId, LogicalSessionId, RunId, TenantId, Timestamp};
use exec::{Ctx, Receipt, ReceiptState, Resolved, Sighting};
use futures::{StreamExt, stream};
use ports::receipts::{EffectId, Settlement};
use ports::store::{Batch, Expect, Key, Range, Row, Table};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::artifact::Artifact;
use crate::caches::Observation;
use crate::commit::TRIES;
use crate::error::Error;
use crate::load::Versioned;
use crate::open_run::open_run_key;
use crate::rows;
use crate::service::Service;
use crate::sync::lock;

/// How many rows are read at a time.
const PAGE: usize = 100;
/// The bound on rows whose time this process measures. Others wait until there is room.
const MAX_WATCHED: usize = 100_000;
/// How many looks of one tenant are made in one pass, and how many at a time, so that one tenant does not delay the others for long.
const MAX_LOOKS: usize = 64;
const LOOKS_AT_ONCE: usize = 8;
/// The looks that must find nothing before an effect counts as failed.
const LOOKS_FOR_FAILED: u32 = 2;
/// After this many looks of which too few were conclusive, the outcome stays unknown for ever.
const MOST_LOOKS: u32 = 100;
/// The longest pause between two looks, unless the catalog asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The row beside a receipt with the data for later looks. The row exists while the outcome is not known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SettlementRow {
    settlement: Settlement,
    /// The processes whose request may still leave, or is under way.
    senders: Vec<InstanceId>,
    /// The looks that were begun.
    begun: u32,
    /// The looks that found nothing, and would have found the effect.
    found_nothing: u32,
    /// When the next look is expected, for readers of the row. No decision depends on this time.
    next: Option<Timestamp>,
}

impl SettlementRow {
    pub fn new(settlement: &Settlement, sender: InstanceId) -> Self {
        let settlement = settlement.clone();
        Self { settlement, senders: vec![sender], begun: 0, found_nothing: 0, next: None }
    }

    /// Adds a process that sends the request.
    #[must_use]
    pub fn with_sender(mut self, sender: InstanceId) -> Self {
        if !self.senders.contains(&sender) {
            self.senders.push(sender);
        }
        self
    }

    /// Removes a process whose request has ended.
    #[must_use]
    pub fn without_sender(mut self, sender: InstanceId) -> Self {
        self.senders.retain(|other| *other != sender);
        self
    }

    /// Returns the time from the end of the request, or from the last look, to the next look. Looks that decide nothing become rarer.
    fn pause(&self) -> Duration {
        let settle = Duration::from_millis(self.settlement.settles_ms);
        let inconclusive = self.begun.saturating_sub(self.found_nothing).min(16);
        settle.saturating_mul(1 << inconclusive).min(LONGEST_PAUSE.max(settle))
    }
}

/// The outcome of one pass over the open settlements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettledReceipts {
    /// The receipts that were closed as done or failed.
    pub closed: usize,
    /// The time until the next look of which this process knows.
    pub next: Option<Duration>,
}

/// A settlement that is due.
struct Due {
    key: Key,
    session: LogicalSessionId,
    run: RunId,
    found: Versioned<SettlementRow>,
}

impl Service {
    /// Looks again for the effects whose answers were lost and whose settle time is over, and closes their receipts.
    pub async fn settle_receipts(self: &Arc<Self>, tenants: &[TenantId]) -> Result<SettledReceipts, Error> {
        let mut settled = SettledReceipts::default();
        let before = std::mem::take(&mut *lock(&self.watched_settlements.0));
        let mut watched = HashMap::new();
        for tenant in tenants {
            let due = self.due_settlements(tenant, &before, &mut watched, &mut settled.next).await?;
            lock(&self.watched_settlements.0).extend(watched.drain());
            let closed = stream::iter(due).map(|due| self.settle(due)).buffer_unordered(LOOKS_AT_ONCE);
            settled.closed += closed.filter(|closed| std::future::ready(*closed)).count().await;
        }
        Ok(settled)
    }

    /// Returns the settlements of a tenant that are due, and measures the time of the others.
    async fn due_settlements(
        &self,
        tenant: &TenantId,
        before: &HashMap<(TenantId, String), Observation>,
        watched: &mut HashMap<(TenantId, String), Observation>,
        next: &mut Option<Duration>,
    ) -> Result<Vec<Due>, Error> {
        let mut due = Vec::new();
        let mut after = None;
        loop {
            let range = Range {
                tenant: tenant.clone(),
                table: Table::Settlement,
                prefix: String::new(),
                after: after.take(),
                limit: PAGE,
            };
            let page = self.ports.store.scan(&range).await?;
            for (id, row) in &page {
                let Some((session, run, found)) = parse_settlement(id, row) else { continue };
                let name = (tenant.clone(), id.clone());
                let known = before.get(&name).filter(|known| known.version == row.version).copied();
                // A request that has ended stays ended, so this is asked once for each version of the row.
                if known.is_none() && !self.has_request_ended(tenant, session, run, &found.row).await? {
                    continue;
                }
                let known = known.unwrap_or_else(|| Observation { version: row.version, since: Instant::now() });
                if watched.len() < MAX_WATCHED {
                    watched.insert(name, known);
                }
                let remaining = found.row.pause().saturating_sub(known.since.elapsed());
                if !remaining.is_zero() {
                    *next = Some(next.map_or(remaining, |next| next.min(remaining)));
                } else if due.len() < MAX_LOOKS {
                    due.push(Due { key: Key::new(tenant, Table::Settlement, id.clone()), session, run, found });
                } else {
                    *next = Some(Duration::ZERO);
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(due),
            }
        }
    }

    /// Returns whether no request of the effect can leave or is under way.
    async fn has_request_ended(
        &self,
        tenant: &TenantId,
        session: LogicalSessionId,
        run: RunId,
        row: &SettlementRow,
    ) -> Result<bool, Error> {
        // While the run has a lease, its owner may send the request again.
        if self.live_runs.get(run).is_some()
            || self.ports.store.get(&open_run_key(tenant, session, run)).await?.is_some()
        {
            return Ok(false);
        }
        // A run of this process ends after all of its requests, and this one has ended.
        Ok(row.senders.iter().all(|sender| *sender == self.owners.me() || self.owners.is_dead(*sender)))
    }

    /// Looks for one effect. Returns whether its receipt was closed.
    async fn settle(&self, due: Due) -> bool {
        let id = due.key.id.clone();
        match self.try_settle(due).await {
            Ok(is_closed) => is_closed,
            Err(error) => {
                tracing::warn!(receipt = id, %error, "an effect whose answer was lost could not be looked for; this is repeated");
                false
            }
        }
    }

    async fn try_settle(&self, Due { key, session, run, found }: Due) -> Result<bool, Error> {
        // The look is claimed first, so that the other processes begin to wait again.
        let mut row = SettlementRow { begun: found.row.begun + 1, ..found.row };
        row.next = Some(self.now().plus_ms(i64::try_from(row.pause().as_millis()).unwrap_or(i64::MAX)));
        let mut version = found.version;
        if !self.put_settlement(&key, &row, &mut version).await? {
            return Ok(false);
        }
        let sighting = self.look(&key.tenant, session, &row.settlement).await?;
        tracing::info!(
            receipt = key.id,
            look = row.begun,
            ?sighting,
            "looked again for an effect whose answer was lost"
        );
        let close = match sighting {
            Some(Sighting::Happened { probe, rows }) => Close::Done { probe, rows },
            Some(Sighting::NotFound { probe }) if row.found_nothing + 1 >= LOOKS_FOR_FAILED => Close::Failed { probe },
            Some(Sighting::NotFound { .. }) => {
                row.found_nothing += 1;
                self.put_settlement(&key, &row, &mut version).await?;
                return Ok(false);
            }
            None if row.begun >= MOST_LOOKS => Close::NeverKnown,
            None => return Ok(false),
        };
        self.close_settled(&key, (session, run, version), close).await
    }

    /// Stores the row, and begins to measure the time until the next look. Returns false if another process changed it.
    async fn put_settlement(&self, key: &Key, row: &SettlementRow, version: &mut u64) -> Result<bool, Error> {
        let batch = Batch::default().put(key.clone(), rows::write(row), Expect::Version(*version));
        if self.try_commit(batch).await?.is_none() {
            return Ok(false);
        }
        *version += 1;
        let observation = Observation { version: *version, since: Instant::now() };
        lock(&self.watched_settlements.0).insert((key.tenant.clone(), key.id.clone()), observation);
        Ok(true)
    }

    /// Reads whether the effect happened, as its tenant may read now. `None` if this decides nothing.
    async fn look(
        &self,
        tenant: &TenantId,
        session: LogicalSessionId,
        settlement: &Settlement,
    ) -> Result<Option<Sighting>, Error> {
        let Some(catalog) = self.catalog_for(tenant, settlement.catalog).await? else { return Ok(None) };
        // A tenant that may not make the write any more may still read whether it happened, so the whole catalog has the capability.
        let whole = self.catalog(settlement.catalog).await?;
        let Some(capability) = whole.capability(&settlement.capability) else { return Ok(None) };
        let calls = self.call_permits_of(session);
        let catalogs = BTreeMap::from([(catalog.id.clone(), catalog.clone())]);
        let args = settlement.args.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let upstream = self.ports.upstream.as_ref();
        let ctx = Ctx::new(upstream, tenant, &catalogs, &self.limits, &calls);
        Ok(exec::look_again(&ctx, &catalog, capability, &args).await)
    }

    /// Closes the receipt, if it is not closed, and deletes the settlement. Returns whether the receipt was closed here.
    async fn close_settled(
        &self,
        key: &Key,
        (session, run, version): (LogicalSessionId, RunId, u64),
        close: Close,
    ) -> Result<bool, Error> {
        let receipt_key = Key::new(&key.tenant, Table::Receipt, key.id.clone());
        for _ in 0..TRIES {
            let found: Option<Versioned<Receipt>> = self.fetch(&receipt_key).await?;
            let mut batch = Batch::default()
                .delete(key.clone(), Expect::Version(version))
                .check(open_run_key(&key.tenant, session, run), Expect::Absent);
            let open = found.filter(|found| !found.row.state.is_certain());
            let is_closed = open.is_some() && !matches!(close, Close::NeverKnown);
            if let Some(open) = open {
                let receipt = close.apply(open.row);
                batch = batch.put(receipt_key.clone(), rows::write(&receipt), Expect::Version(open.version));
            }
            match self.ports.store.commit(batch).await {
                Ok(()) => return Ok(is_closed),
                // A process that was frozen may just have stored its answer.
                Err(ports::store::Error::Conflict(changed)) if changed == receipt_key => {}
                Err(ports::store::Error::Conflict(_)) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Busy)
    }

    /// Replaces the receipts of a stored result that have settled since. The result itself never changes.
    pub(crate) async fn show_settled(
        &self,
        caller: &Caller,
        session: LogicalSessionId,
        artifact: &mut Artifact,
    ) -> Result<(), Error> {
        if artifact.receipts.iter().all(|receipt| receipt.state.is_certain()) {
            return Ok(());
        }
        let stored = match self.receipts_of(caller, session, artifact.run).await {
            Ok(stored) => stored,
            // The receipts in the result are as true as they were.
            Err(error) if error.is_damage() => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut stored: BTreeMap<EffectId, Receipt> = stored.into_iter().map(|r| (r.intent.id, r)).collect();
        for receipt in &mut artifact.receipts {
            if let Some(now) = stored.remove(&receipt.intent.id)
                && now.state.certainty() >= receipt.state.certainty()
            {
                *receipt = now;
            }
        }
        Ok(())
    }
}

/// How a receipt is closed.
enum Close {
    Done {
        probe: String,
        rows: Vec<catalog::Row>,
    },
    Failed {
        probe: String,
    },
    /// No look decided anything, and none is made any more.
    NeverKnown,
}

impl Close {
    fn apply(&self, receipt: Receipt) -> Receipt {
        let before = match &receipt.state {
            ReceiptState::Unknown { why, .. } => why.clone(),
            _ => "the run was interrupted while it was under way".to_owned(),
        };
        let resolved = |probe: &String| Some(Resolved::Probe { capability: probe.clone() });
        match self {
            Close::Done { probe, rows } => Receipt {
                state: ReceiptState::Done,
                rows: rows.clone(),
                resolved: resolved(probe),
                settles: false,
                ..receipt
            },
            Close::Failed { probe } => {
                let why = format!("`{probe}` does not find it, after: {before}");
                let state = ReceiptState::Failed { status: None, why };
                Receipt { state, resolved: resolved(probe), settles: false, ..receipt }
            }
            Close::NeverKnown => {
                let state = ReceiptState::Unknown { status: None, why: before };
                Receipt { state, settles: false, ..receipt }
            }
        }
    }
}

/// Returns the session and the run that the id of a row names, and the row. A damaged row is logged and left alone.
fn parse_settlement(id: &str, row: &Row) -> Option<(LogicalSessionId, RunId, Versioned<SettlementRow>)> {
    let mut parts = id.split('/');
    let session = LogicalSessionId::parse(parts.next()?).ok()?;
    let run = RunId::parse(parts.next()?).ok()?;
    let found = rows::read(id, &row.value).ok()?;
    Some((session, run, Versioned { row: found, version: row.version }))
}

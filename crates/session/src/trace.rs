//! The trace of a session: its calls, each with its request and its outcome.
//! Invariant: no call waits for its trace. Records are buffered and written many at once; a kill loses the records of
//! a fraction of a second, never the work itself, which is in rows of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use exec::Receipt;
use ports::store::{Batch, Expect, Key, Range, Table};
use tokio_util::sync::CancellationToken;

use crate::call_record::{CallRecord, Exporter, MAX_LISTED, StepRecord, UnwrittenRecord, cut_program};
use crate::error::Error;
use crate::open::SeedRequest;
use crate::program::PlannedProgram;
use crate::run_result::RunResult;
use crate::service::Service;
use crate::sync::lock;
use crate::uri::ResourceUri;

/// Beyond this number the oldest records are dropped: the storage fails or is far too slow. A trace must not fill the
/// memory.
const MAX_UNWRITTEN: usize = 4_096;
/// The pause between two writes, which is the time for which a kill can lose records.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);
/// A session counts as live for this long after a call.
const LIVE_MS: i64 = 15 * 60 * 1000;
/// Records of a session that are read at once.
const PAGE: usize = 500;

impl CallRecord {
    #[must_use]
    pub fn with_seeds(self, seeds: &[SeedRequest]) -> Self {
        let seeds = seeds.iter().take(MAX_LISTED).map(|seed| format!("{}:{}", seed.api, seed.entity)).collect();
        Self { seeds, ..self }
    }

    #[must_use]
    pub fn with_plan(self, planned: &PlannedProgram) -> Self {
        let uri = planned.number.map(|number| ResourceUri::plan(planned.slot, number));
        Self { plan: Some(planned.plan.digest), uri, ..self }
    }

    /// Records the plan, steps and receipts of a run. The program of the run replaces an earlier one, because a call
    /// with a plan commit names only the commit.
    #[must_use]
    pub fn with_run(mut self, run: &RunResult) -> Self {
        self.plan = Some(run.plan);
        self.uri = Some(ResourceUri::run(run.slot, run.number));
        for step in run.outcome.step_times.iter().take(MAX_LISTED) {
            let us = u64::try_from(step.time.as_micros()).unwrap_or(u64::MAX);
            self.steps.push(StepRecord { name: step.name.clone(), us, rows: step.rows });
        }
        self.receipts.extend(receipt_texts(&run.outcome.receipts));
        let is_unsettled = run.outcome.receipts.iter().any(|receipt| !receipt.state.is_certain());
        self.unsettled = is_unsettled.then_some(run.run);
        if !run.program.is_empty() {
            self.program = Some(cut_program(&run.program));
        }
        self
    }
}

/// Describes the first receipts of a run: `demo:ticket_open done`.
fn receipt_texts(receipts: &[Receipt]) -> impl Iterator<Item = String> {
    receipts.iter().take(MAX_LISTED).map(|receipt| {
        let intent = &receipt.intent;
        format!("{}:{} {}", intent.catalog, intent.capability, receipt.state)
    })
}

impl Service {
    /// Buffers a record for the trace of the session that `reference` names. `write_traces_until` writes it.
    pub fn record(&self, caller: &Caller, reference: &str, record: CallRecord) {
        let mut unwritten = lock(&self.traces.unwritten);
        if unwritten.len() >= MAX_UNWRITTEN {
            unwritten.pop_front();
            self.meter.trace_dropped();
        }
        unwritten.push_back(UnwrittenRecord { caller: caller.clone(), reference: reference.to_owned(), record });
    }

    /// Sends a copy of each record to an exporter, when the record is written.
    pub fn export_calls_to(&self, exporter: Arc<dyn Exporter>) {
        *lock(&self.traces.exporter) = Some(exporter);
    }

    /// Writes buffered records until `stop`, and once more after it.
    pub async fn write_traces_until(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(WRITE_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
            if let Err(error) = self.write_traces().await {
                tracing::warn!(%error, "calls could not be added to their traces");
            }
        }
    }

    /// Writes the records that are buffered now.
    pub async fn write_traces(&self) -> Result<(), Error> {
        // The lock is not held during the commit, so calls go on adding records. A failed commit loses the drained
        // records, and the caller logs the failure.
        let unwritten: Vec<UnwrittenRecord> = lock(&self.traces.unwritten).drain(..).collect();
        if unwritten.is_empty() {
            return Ok(());
        }
        let exporter = lock(&self.traces.exporter).clone();
        let mut batch = Batch::default();
        // Many calls of a quarter of a second name the same session, which is looked up once.
        let mut sessions = HashMap::new();
        for UnwrittenRecord { caller, reference, record } in unwritten {
            let lookup = (caller.tenant.clone(), caller.connection.row_id(), reference.clone());
            let session = match sessions.get(&lookup) {
                Some(session) => *session,
                None => {
                    let session = self.session_id(&caller, &reference).await.ok();
                    sessions.insert(lookup, session);
                    session
                }
            };
            // The call named no session, so it belongs to no trace.
            let Some(session) = session else { continue };
            lock(&self.traces.live).insert(session, self.now());
            if let Some(exporter) = &exporter {
                exporter.export(session, &record);
            }
            // A random suffix separates calls of the same millisecond, perhaps of several processes.
            let suffix = self.new_run_id().to_string();
            let name = format!("{session}/{:015}-{}", record.at, suffix.get(24..).unwrap_or_default());
            let key = Key::new(&caller.tenant, Table::Trace, name);
            batch = batch.put(key, crate::rows::write(&record), Expect::Any);
        }
        Ok(self.ports.store.commit(batch).await?)
    }

    /// Returns the newest calls of a session, the oldest of them first.
    pub async fn trace(&self, caller: &Caller, reference: &str) -> Result<Vec<CallRecord>, Error> {
        let id = self.session_id(caller, reference).await?;
        let mut calls = VecDeque::new();
        let mut after = None;
        loop {
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::Trace,
                prefix: format!("{id}/"),
                after,
                limit: PAGE,
            };
            let rows = self.ports.store.scan(&range).await?;
            let Some((last, _)) = rows.last() else { break };
            after = Some(last.clone());
            // A damaged record is logged by `read` and left out, so that it does not hide the others.
            calls.extend(rows.iter().filter_map(|(id, row)| crate::rows::read::<CallRecord>(id, &row.value).ok()));
            let excess = calls.len().saturating_sub(self.retention.trace_calls as usize);
            drop(calls.drain(..excess));
        }
        for call in &mut calls {
            let Some(run) = call.unsettled.take() else { continue };
            let settled = self.receipts_of(caller, id, run).await?;
            // A run whose stored result has expired has no receipts any more.
            if settled.len() >= call.receipts.len() {
                call.receipts = receipt_texts(&settled).collect();
            }
        }
        Ok(calls.into())
    }

    /// Counts the sessions that this process was called for recently.
    pub(crate) fn live_sessions(&self) -> usize {
        let now = self.now();
        let mut live = lock(&self.traces.live);
        live.retain(|_, last| now.0.saturating_sub(last.0) < LIVE_MS);
        live.len()
    }
}

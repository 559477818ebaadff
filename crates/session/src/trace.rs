//! The trace of a session: each call with what was asked and what came of it.
//! Invariant: no call waits for its trace. Calls are kept in memory for a moment and written many at once; what a kill loses is
//! that moment of the trace, never the work itself, which is in rows of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use ports::store::{Batch, Expect, Key, Range, Table};
use tokio_util::sync::CancellationToken;

use crate::calls::{Call, CallStep, Exporter, Waiting};
use crate::error::Error;
use crate::open::SeedRequest;
use crate::program::PlannedProgram;
use crate::run_result::RunResult;
use crate::service::Service;
use crate::sync::lock;
use crate::uri::ResourceUri;

/// What is shown of a long program, and how many steps and receipts of a long run.
const PROGRAM_CHARS: usize = 2_000;
const LISTED: usize = 50;

impl Call {
    pub fn new(tool: &str) -> Self {
        Self { tool: tool.to_owned(), ..Self::default() }
    }

    #[must_use]
    pub fn with_program(self, program: &str) -> Self {
        Self { program: Some(cut(program)), ..self }
    }

    #[must_use]
    pub fn with_seeds(self, seeds: &[SeedRequest]) -> Self {
        let seeds = seeds.iter().take(LISTED).map(|seed| format!("{}:{}", seed.api, seed.entity)).collect();
        Self { seeds, ..self }
    }

    #[must_use]
    pub fn with_plan(self, planned: &PlannedProgram) -> Self {
        let uri = planned.number.map(|number| ResourceUri::plan(planned.slot, number));
        Self { plan: Some(planned.plan.digest), uri, ..self }
    }

    #[must_use]
    pub fn with_run(self, ran: &RunResult) -> Self {
        let step = |took: &exec::StepTime| CallStep {
            name: took.name.clone(),
            us: u64::try_from(took.time.as_micros()).unwrap_or(u64::MAX),
            rows: took.rows,
        };
        let receipt = |r: &exec::Receipt| format!("{}:{} {}", r.intent.catalog, r.intent.capability, r.state);
        Self {
            plan: Some(ran.plan),
            uri: Some(ResourceUri::run(ran.slot, ran.number)),
            steps: ran.outcome.step_times.iter().take(LISTED).map(step).collect(),
            receipts: ran.outcome.receipts.iter().take(LISTED).map(receipt).collect(),
            program: Some(cut(&ran.program)).filter(|program| !program.is_empty()).or(self.program),
            ..Self { program: None, ..self }
        }
    }
}

fn cut(program: &str) -> String {
    program.chars().take(PROGRAM_CHARS).collect()
}

/// Beyond this the oldest are dropped: the storage fails or is far too slow.
const MOST_WAITING: usize = 4_096;
/// Of an answer; what hosts are shown of a run is no longer, unless the settings say so.
const ANSWER_CHARS: usize = 4_096;
const BETWEEN: Duration = Duration::from_millis(250);
const LIVE_MS: i64 = 15 * 60 * 1000;
/// Calls of a session that are read at once.
const PORTION: usize = 500;

impl Service {
    /// Remembers a call. It is written in a moment, by `keep_traces`.
    pub fn record(&self, caller: &Caller, reference: &str, (call, answer): (Call, &str)) {
        let mut waiting = lock(&self.traces.waiting);
        if waiting.len() >= MOST_WAITING {
            waiting.pop_front();
            self.meter.trace_dropped();
        }
        let (caller, reference, answer_chars) = (caller.clone(), reference.to_owned(), answer.chars().count());
        let answer = if answer_chars <= ANSWER_CHARS { answer.to_owned() } else { String::new() };
        let call = Call { answer_chars, answer, ..call };
        waiting.push_back(Waiting { caller, reference, call });
    }

    pub fn export_calls_to(&self, exporter: Arc<dyn Exporter>) {
        *lock(&self.traces.exporter) = Some(exporter);
    }

    /// Writes what was recorded, until `stop`, and once more then.
    pub async fn keep_traces(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(BETWEEN) => {}
                () = stop.cancelled() => {}
            }
            if let Err(error) = self.write_traces().await {
                tracing::warn!(%error, "calls could not be added to their traces");
            }
        }
    }

    /// Writes what was recorded so far.
    pub async fn write_traces(&self) -> Result<(), Error> {
        let waiting: Vec<Waiting> = lock(&self.traces.waiting).drain(..).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let exporter = lock(&self.traces.exporter).clone();
        let mut batch = Batch::default();
        // Of a quarter of a second many calls name the same session.
        let mut named = HashMap::new();
        for one in waiting {
            let name = (one.caller.tenant.clone(), one.caller.connection.row_id(), one.reference.clone());
            let id = match named.get(&name) {
                Some(id) => *id,
                None => {
                    let found = self.session_id(&one.caller, &one.reference).await.ok();
                    *named.entry(name).or_insert(found)
                }
            };
            // A call that names no session is no session's.
            let Some(id) = id else { continue };
            lock(&self.traces.live).insert(id, self.now());
            if let Some(exporter) = &exporter {
                exporter.export(id, &one.call);
            }
            // Calls of one moment, perhaps of several processes, have names of their own.
            let suffix = self.new_run_id().to_string();
            let name = format!("{id}/{:015}-{}", one.call.at, suffix.get(24..).unwrap_or_default());
            let key = Key::new(&one.caller.tenant, Table::Trace, name);
            batch = batch.put(key, crate::rows::write(&one.call), Expect::Any);
        }
        Ok(self.ports.store.commit(batch).await?)
    }

    /// The newest calls of a session, the oldest of them first.
    pub async fn trace(&self, caller: &Caller, reference: &str) -> Result<Vec<Call>, Error> {
        let id = self.session_id(caller, reference).await?;
        let mut calls = VecDeque::new();
        let mut after = None;
        loop {
            let (tenant, prefix) = (caller.tenant.clone(), format!("{id}/"));
            let range = Range { tenant, table: Table::Trace, prefix, after, limit: PORTION };
            let rows = self.ports.store.scan(&range).await?;
            let Some((last, _)) = rows.last() else { break };
            after = Some(last.clone());
            calls.extend(rows.iter().filter_map(|(id, row)| crate::rows::read::<Call>(id, &row.value).ok()));
            let over = calls.len().saturating_sub(self.retention.trace_calls as usize);
            drop(calls.drain(..over));
        }
        Ok(calls.into())
    }

    /// Sessions that were called in the last quarter of an hour, by this process.
    pub(crate) fn live_sessions(&self) -> usize {
        let now = self.now();
        let mut live = lock(&self.traces.live);
        live.retain(|_, last| now.0.saturating_sub(last.0) < LIVE_MS);
        live.len()
    }
}

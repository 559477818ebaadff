//! Makes the calls that a parked run waits for.
//! Invariant: a read is repeated after a crash; an effect is not. The answer to an effect is stored before it is
//! delivered, and an effect whose answer was lost is reported as unknown.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use access::Caller;
use base::{ExecutionId, LogicalSessionId, Slot, TenantId, Timestamp};
use ports::scripts::{Call, Thrown};
use ports::store::{Batch, Write};
use ports::upstream::DepartureCheck;
use serde_json::{Value, json};

use super::drive::ScriptRun;
use super::fetch::FetchCaller;
use super::fetch_receipt::FetchDeparture;
use crate::engine::claim_name;
use crate::engine::rows::{CallAnswer, ExecutionRow, Parked, PendingCall, SessionName};
use crate::error::Error;
use crate::error::JsError;
use crate::load::{Session, Versioned};
use crate::program::PlannedProgram;
use crate::rows::{Claim, ClaimRow};
use crate::run_result::{RunAnswer, RunRequest, RunResult};
use crate::service::Service;
use crate::uri::ResourceUri;

/// How often a plan that waits for its approval is checked, in case another process approves it.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A call with its answer.
pub(super) struct FinishedCall {
    pub id: u64,
    pub answer: CallAnswer,
    /// The write that closes the call's receipt, if it has one.
    pub closing: Option<Write>,
}

/// The event that ends the waiting of a parked run.
pub(super) enum CallEvents {
    Answers(Vec<(u64, Result<Value, Thrown>)>),
    TimedOut,
    /// Another process owns the run now, or it has ended.
    Left,
}

impl ScriptRun {
    pub(super) async fn answers(&mut self) -> Result<CallEvents, Error> {
        let Some(Parked { owed, .. }) = self.at.row.parked.clone() else { return Ok(CallEvents::Left) };
        let stored = self.stored_answers(&owed);
        if !stored.is_empty() {
            return Ok(CallEvents::Answers(stored));
        }
        // A run whose time is over makes no call.
        let left = Duration::from_millis(self.left_ms());
        if left.is_zero() {
            return Ok(CallEvents::TimedOut);
        }
        if self.live.leave.is_cancelled() {
            return Ok(CallEvents::Left);
        }
        owed.iter().filter(|owed| owed.due.is_none()).for_each(|owed| self.start_call(owed));
        let next = owed.iter().filter_map(|owed| owed.due).min();
        let clock = self.service.ports.clock.clone();
        // Ready answers are taken without sleeping, since the shortest sleep of the runtime is a millisecond. Calls
        // are checked before timers, or timers of zero length would starve them.
        if let Some(answered) = self.calls.try_join_next() {
            let first = answered.map_err(|_| Error::Lost)?;
            return self.heard(first).await;
        }
        let over = due(&owed, clock.now());
        if !over.is_empty() {
            return Ok(CallEvents::Answers(over));
        }
        let timer = async {
            match next {
                Some(due) => clock.sleep(until(due, clock.now())).await,
                None => std::future::pending().await,
            }
        };
        let leave = self.live.clone();
        tokio::select! {
            biased;
            () = leave.leave.cancelled() => Ok(CallEvents::Left),
            Some(answered) = self.calls.join_next(), if !self.calls.is_empty() => {
                let first = answered.map_err(|_| Error::Lost)?;
                self.heard(first).await
            }
            () = timer => Ok(CallEvents::Answers(due(&owed, clock.now()))),
            () = clock.sleep(left) => Ok(CallEvents::TimedOut),
            () = lost(&self.service, (&self.tenant, self.id), self.at.row.owner) => Ok(CallEvents::Left),
        }
    }

    /// Returns answers that are available without waiting, before any call is made. `None` if there are none, or if
    /// the run's time is over.
    pub(super) fn ready_answers(&self) -> Option<Vec<(u64, Result<Value, Thrown>)>> {
        let owed = &self.at.row.parked.as_ref().filter(|_| self.left_ms() > 0)?.owed;
        let stored = self.stored_answers(owed);
        Some(if stored.is_empty() { due(owed, self.moment()) } else { stored }).filter(|answers| !answers.is_empty())
    }

    /// Collects every answer received so far. Answers to effects are stored before they are delivered.
    async fn heard(&mut self, first: FinishedCall) -> Result<CallEvents, Error> {
        let mut answers = vec![first];
        while let Some(more) = self.calls.try_join_next() {
            answers.push(more.map_err(|_| Error::Lost)?);
        }
        let Some(mut parked) = self.at.row.parked.clone() else { return Ok(CallEvents::Left) };
        let mut has_effects = false;
        for owed in parked.owed.iter_mut().filter(|owed| is_effect(&owed.call.call)) {
            if let Some(finished) = answers.iter().find(|finished| finished.id == owed.call.id) {
                owed.answer = Some(finished.answer.clone());
                has_effects = true;
            }
        }
        if has_effects {
            let next = ExecutionRow { parked: Some(parked), ..self.at.row.clone() };
            let closings = answers.iter().filter_map(|finished| finished.closing.clone()).collect();
            if !self.commit_with(next, None, closings).await? {
                return Ok(CallEvents::Left);
            }
        }
        Ok(CallEvents::Answers(answers.into_iter().map(|finished| (finished.id, finished.answer.into())).collect()))
    }

    /// Returns answers that are already known: stored ones, and `UnknownOutcome` for effects that an earlier owner has, or may
    /// have, sent without storing an answer.
    fn stored_answers(&self, owed: &[PendingCall]) -> Vec<(u64, Result<Value, Thrown>)> {
        let known = |owed: &PendingCall| match &owed.answer {
            Some(answer) => Some((owed.call.id, answer.clone().into())),
            None if owed.begun || self.interrupted.contains(&owed.call.id) => {
                let message = "the server stopped while this request was under way; whether it arrived is unknown";
                Some((owed.call.id, Err(thrown("UnknownOutcome", message))))
            }
            None => None,
        };
        owed.iter().filter_map(known).collect()
    }

    /// Lets requests that have left finish although the run is over or lost, and closes their receipts with their outcomes.
    pub(super) fn close_receipts_later(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        let owed = self.at.row.parked.iter().flat_map(|parked| &parked.owed);
        let has_effects = self.has_sent_effects || owed.into_iter().any(|owed| is_effect(&owed.call.call));
        if calls.is_empty() || !has_effects {
            return;
        }
        let (service, execution) = (self.service.clone(), self.id);
        tokio::spawn(async move {
            while let Some(finished) = calls.join_next().await {
                let Some(closing) = finished.ok().and_then(|finished| finished.closing) else { continue };
                if let Err(error) = service.try_commit(Batch { writes: vec![closing] }).await {
                    tracing::warn!(%execution, %error, "the receipt of a request could not be closed and stays open");
                }
            }
        });
    }

    pub(super) fn start_call(&mut self, owed: &PendingCall) {
        if !self.asked.insert(owed.call.id) {
            return;
        }
        let (id, call, review) = (owed.call.id, owed.call.call.clone(), owed.review.clone());
        let headers = self.at.row.headers.clone();
        let within = match &self.at.row.session {
            Some(SessionName::Logical(session)) => Some(*session),
            _ => None,
        };
        let asks = CallContext {
            service: self.service.clone(),
            caller: self.caller(),
            session: match (&self.at.row.session, self.at.row.slot) {
                (Some(SessionName::Logical(session)), Some(slot)) => Some((*session, slot)),
                _ => None,
            },
            execution: self.id,
            request_id: format!("js/{}/{id}", self.id),
        };
        let departure = match &call {
            Call::Fetch { request } if super::fetch::is_write(request) => {
                self.has_sent_effects = true;
                Some(FetchDeparture {
                    service: self.service.clone(),
                    tenant: self.tenant.clone(),
                    execution: self.id,
                    call: id,
                    request: super::fetch::label(request),
                    leave: self.live.leave.clone(),
                    is_opened: AtomicBool::new(false),
                })
            }
            _ => None,
        };
        let work = async move {
            let mut state = None;
            let answer = match call {
                Call::Timer { .. } => Ok(Value::Null),
                Call::Plasm { program } => asks.plasm(program, review).await,
                Call::Plan { program } => asks.plan(&program).await,
                Call::Fetch { request } => {
                    let from = FetchCaller { caller: &asks.caller, headers: &headers, session: within };
                    let check = departure.as_ref().map(|departure| departure as &dyn DepartureCheck);
                    let fetched = super::fetch::fetch(&asks.service, from, request, check).await;
                    state = Some(fetched.state);
                    fetched.answer
                }
            };
            let closing = departure.zip(state).and_then(|(departure, state)| departure.closing(state));
            FinishedCall { id, answer: CallAnswer::from(answer), closing }
        };
        self.calls.spawn(tracing::Instrument::in_current_span(work));
    }
}

async fn lost(service: &Service, (tenant, id): (&TenantId, base::ExecutionId), owner: base::InstanceId) {
    let key = crate::engine::rows::execution_key(tenant, id);
    loop {
        service.ports.clock.sleep(Duration::from_secs(1)).await;
        let found: Result<Option<Versioned<ExecutionRow>>, Error> = service.fetch(&key).await;
        if let Ok(Some(found)) = found
            && (found.row.state.is_final() || found.row.owner != owner)
        {
            return;
        }
    }
}

fn until(due: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(due.0.saturating_sub(now.0)).unwrap_or(0))
}

/// Returns timers that are due, in the order of their times.
fn due(owed: &[PendingCall], now: Timestamp) -> Vec<(u64, Result<Value, Thrown>)> {
    let mut over: Vec<(Timestamp, u64)> =
        owed.iter().filter_map(|owed| Some((owed.due?, owed.call.id))).filter(|(due, _)| *due <= now).collect();
    over.sort();
    over.into_iter().map(|(_, id)| (id, Ok(Value::Null))).collect()
}

/// Whether a call has an effect that is covered by no receipt and no claim.
pub(super) fn is_effect(call: &Call) -> bool {
    match call {
        Call::Fetch { request } => super::fetch::is_write(request),
        Call::Timer { .. } | Call::Plasm { .. } | Call::Plan { .. } => false,
    }
}

pub(super) fn thrown(name: &str, message: impl Into<String>) -> Thrown {
    Thrown { name: name.to_owned(), message: message.into(), stack: String::new() }
}

/// The context of a call, independent of the run.
struct CallContext {
    service: Arc<Service>,
    caller: Caller,
    session: Option<(LogicalSessionId, Slot)>,
    /// The run that makes the call.
    execution: ExecutionId,
    /// The same for every attempt of one call, so that a write is not done twice.
    request_id: String,
}

impl CallContext {
    async fn session(&self) -> Result<Session, Thrown> {
        let (id, slot) = self
            .session
            .ok_or_else(|| thrown("TypeError", "plasm needs a logical session; send logical_session_ref"))?;
        self.service.session_in(&self.caller, id, slot).await.map_err(|error| as_thrown(&error))
    }

    async fn plan(&self, program: &str) -> Result<Value, Thrown> {
        let session = self.session().await?;
        let planned = self.planned(&session, program).await.map_err(|error| as_thrown(&error))?;
        Ok(json!({"plan": planned.explained, "verdict": planned.plan.verdict, "plan_commit_ref": planned.commit}))
    }

    async fn planned(&self, session: &Session, program: &str) -> Result<PlannedProgram, Error> {
        let mut planned = self.service.plan_in(session, program, self.service.now())?;
        self.service.store_plan(&self.caller, session, &mut planned, program).await?;
        Ok(planned)
    }

    async fn plasm(&self, program: String, review: Option<(String, String)>) -> Result<Value, Thrown> {
        let session = self.session().await?;
        let ran = match review {
            Some((commit, _)) => self.reviewed(&session, &commit).await,
            None => self.run(session, program).await,
        };
        rows_of(&*ran.map_err(|error| as_thrown(&error))?)
    }

    /// Runs a program. A write runs only if the server allows it without a review; its request id then prevents a
    /// second execution.
    async fn run(&self, session: Session, program: String) -> Result<Arc<RunResult>, Error> {
        let force = self.service.js()?.settings.writes_without_review;
        let request = RunRequest {
            program: Some(program),
            force,
            request_id: force.then(|| self.request_id.clone()),
            parent: Some(self.execution),
            ..RunRequest::default()
        };
        let at = (session.id, session.slot);
        let answer = self.service.run_in(&self.caller, session, &request).await?;
        self.ended(at, answer).await
    }

    /// Waits for the end of a run that may have become detached.
    async fn ended(
        &self,
        (id, slot): (LogicalSessionId, Slot),
        mut answer: RunAnswer,
    ) -> Result<Arc<RunResult>, Error> {
        loop {
            match answer {
                RunAnswer::Finished(ran) => return Ok(ran),
                RunAnswer::Running(operation) => {
                    let session = self.service.session_in(&self.caller, id, slot).await?;
                    answer = self.service.ask_operation(&self.caller, &session, &operation.handle, false).await?;
                }
            }
        }
    }

    /// Waits until the plan was approved and has run.
    async fn reviewed(&self, session: &Session, commit: &str) -> Result<Arc<RunResult>, Error> {
        let caller = &self.caller;
        let missing = || Error::NoCommit(commit.to_owned());
        let number = crate::rows::commit_number(commit).ok_or_else(missing)?;
        let key = crate::rows::commit_key(&caller.tenant, session.id, number);
        let js = self.service.js()?;
        let changes = js.notifier(&claim_name(&key.id));
        loop {
            let told = changes.notified();
            let found: Versioned<ClaimRow> = self.service.fetch(&key).await?.ok_or_else(missing)?;
            match found.row.state {
                Claim::Done(number) => return self.service.replay(caller, session, number).await,
                // The recovery continues the run if its process died; it is asked here so that the answer comes sooner.
                Claim::Claimed(run) => self.service.recover_claimed(caller, session, run).await?,
                Claim::Unused => {}
            }
            tokio::select! {
                () = told => {}
                () = self.service.ports.clock.sleep(LOOK_AGAIN) => {}
            }
        }
    }
}

/// Returns the rows of the last result, and all results if there are several.
fn rows_of(ran: &RunResult) -> Result<Value, Thrown> {
    let mut returns = Vec::new();
    for finished in &ran.outcome.returns {
        let rowset = finished.result.as_ref().map_err(|error| thrown("PlasmError", error.to_string()))?;
        let rows: Vec<Value> =
            rowset.rows.iter().map(|row| serde_json::to_value(row.as_ref()).unwrap_or_default()).collect();
        returns.push(json!({
            "label": finished.label,
            "entity": finished.entity,
            "rows": rows,
            "coverage": rowset.coverage.to_string(),
        }));
    }
    if ran.outcome.cancelled {
        return Err(thrown("PlasmError", "the program was told to stop before its end"));
    }
    let last = returns.last().cloned().unwrap_or(json!({"rows": [], "coverage": "complete"}));
    let mut value = json!({
        "rows": last["rows"],
        "coverage": last["coverage"],
        "artifact": ResourceUri::run(ran.slot, ran.number),
    });
    if !ran.pages.is_empty() {
        value["more"] = ran.pages.iter().map(|more| json!({"label": more.label, "page": more.handle})).collect();
    }
    if returns.len() > 1 {
        value["returns"] = Value::Array(returns);
    }
    Ok(value)
}

fn as_thrown(error: &Error) -> Thrown {
    match error {
        Error::Program { text, diagnostics } => {
            thrown("PlasmError", format!("the program has mistakes\n{}", base::render_for_model(text, diagnostics)))
        }
        Error::Js(JsError::Fenced { explained }) => thrown("PlasmError", format!("{error}\n{explained}")),
        Error::Shared(inner) => as_thrown(inner),
        other => thrown("PlasmError", format!("{}: {other}", other.code())),
    }
}

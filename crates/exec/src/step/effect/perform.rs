//! The execution of one effect, from its wait for a place at the origin to its closed receipt.
//! Invariant: a request leaves only after the receipt is stored, and the receipt is stored after every wait, in one transaction with
//! the check that the run is still this process's and is not cancelled (`departure.rs`). The outcome of a sent request is resolved
//! as far as possible, even if the run is cancelled. An effect that an earlier attempt of the run completed is never repeated.
//! A receipt is closed as failed only if no request of the effect can arrive any more: none left, or the API refused the only one.

use base::{Digest, Response};
use catalog::{Args, BindInput, DecodeError, Row, Transport, bind};
use ports::receipts::{EffectId, EffectIntent, Receipt, Resolved, State};
use ports::upstream::Call;
use serde_json::{Value, json};

use super::EffectStep;
use super::departure::{Departure, Withheld};
use super::probe::{self, ProbeFinding};
use super::verdict::{self, Verdict};
use crate::budget::{CallPermit, Counted};
use crate::call::{ListPart, Target, decode_off_thread};
use crate::error::{ApiProblem, StepError};

/// The receipt and the result of one effect.
pub struct EffectResult {
    /// The receipt of the effect; `None` if no receipt was opened.
    pub receipt: Option<Receipt>,
    pub result: Result<Vec<Row>, StepError>,
}

impl From<StepError> for EffectResult {
    fn from(error: StepError) -> Self {
        Self { receipt: None, result: Err(error) }
    }
}

/// Performs one effect. The receipt is opened before the request is sent, and closed with the outcome.
pub async fn perform(effect_step: &EffectStep<'_>, row: usize, args: &Args) -> EffectResult {
    let ctx = effect_step.reads.ctx;
    let Some(effects) = ctx.effects else { return StepError::NoReceipts.into() };
    let id = EffectId { run: effects.run, step: effect_step.index, row };
    let idempotency_key = effect_step.has_idempotency_key().then(|| id.idempotency_key());
    let input = BindInput {
        fields: effect_step.reads.fields,
        idempotency_key: idempotency_key.as_deref(),
        ..BindInput::new(args)
    };
    let Target { catalog, capability } = effect_step.target;
    let request = match bind(catalog, capability, &input) {
        Ok(request) => request,
        Err(error) => return StepError::from(error).into(),
    };
    let permit = effect_step.reads.allowance.permit(ctx, catalog).await;
    // The call is counted before the receipt is opened. An effect that is refused by a bound or a cancelled run must not have
    // an open receipt.
    if let Err(error) = effect_step.reads.allowance.count_call(ctx, catalog, Counted::ByPlan) {
        return error.into();
    }
    let intent = EffectIntent {
        id,
        catalog: catalog.id.clone(),
        capability: capability.name.clone(),
        label: effect_step.step.label.as_ref().map(ToString::to_string),
        request: request.label(),
        args: Digest::of(base::canonical(&json!(args)).as_bytes()),
        once: idempotency_key,
        undo: effect_step.effect().and_then(|e| e.undo.clone()),
        settlement: probe::settlement(ctx.limits, effect_step.target, args).map(Box::new),
    };
    let earlier = match effects.receipts.earlier(&id).await {
        Ok(earlier) => earlier,
        Err(error) => return StepError::from(error).into(),
    };
    let call =
        Call { tenant: ctx.tenant.clone(), request, repeatable: effect_step.is_repeatable(), pace: catalog.pace };
    let mut pending = PendingEffect {
        effect_step,
        args,
        call,
        receipt: Receipt::open(intent),
        permit: Some(permit),
        opened: false,
        is_uncertain: false,
    };
    if let Some(earlier) = earlier {
        pending.opened = true;
        if let Some(known) = pending.resume(earlier).await {
            return known;
        }
    }
    let result = pending.send_and_resolve().await;
    if !pending.opened {
        return EffectResult { receipt: None, result };
    }
    let mut receipt = pending.receipt;
    receipt.settles = settles(&receipt);
    match effects.receipts.close(&receipt).await {
        Ok(()) => EffectResult { receipt: Some(receipt), result },
        // The outcome is known in this process but not stored, so the effect counts as failed and no later effect runs.
        Err(error) => {
            // The stored receipt is still open, so the run may be continued and send the request again.
            if let State::Failed { status, why } = receipt.state {
                receipt.state = State::Unknown { status, why };
                receipt.settles = settles(&receipt);
            }
            EffectResult { receipt: Some(receipt), result: result.and(Err(error.into())) }
        }
    }
}

/// Returns whether a later look closes the receipt.
fn settles(receipt: &Receipt) -> bool {
    matches!(receipt.state, State::Unknown { .. }) && receipt.intent.settlement.is_some()
}

/// An effect that waits for its departure or for its answer.
struct PendingEffect<'a> {
    effect_step: &'a EffectStep<'a>,
    args: &'a Args,
    /// The bound request. It is sent a second time if the API recognises repetitions.
    call: Call,
    /// The receipt with the current state. It is stored again when it is closed.
    receipt: Receipt,
    /// The permits of the call. They are released before a probe.
    permit: Option<CallPermit<'a>>,
    /// Whether a receipt of this effect is stored. Without one nothing has left, and there is nothing to close.
    opened: bool,
    /// A departure ended without a certain answer, so its request may still arrive. No later refusal proves then that nothing happens.
    is_uncertain: bool,
}

/// Why the outcome of an effect is unknown after its process or its run ended early.
const INTERRUPTED: &str = "the run was interrupted while it was under way";

impl PendingEffect<'_> {
    /// Handles the receipt of an earlier attempt of this run. Returns the final result, or `None` if the request must be sent
    /// again because the API recognises repetitions.
    async fn resume(&mut self, earlier: Receipt) -> Option<EffectResult> {
        let label = earlier.intent.request.clone();
        // The earlier effect of this step and row had other arguments, so its outcome does not apply to this effect.
        if earlier.intent.args != self.receipt.intent.args {
            let why = "the run was resumed, and what it read since is not what it had read".to_owned();
            let state = match earlier.state {
                State::Open => State::Unknown { status: None, why: INTERRUPTED.to_owned() },
                known => known,
            };
            let receipt = Receipt { state, ..earlier };
            return Some(EffectResult { receipt: Some(receipt), result: Err(StepError::Failed { label, why }) });
        }
        match &earlier.state {
            State::Done => {
                let rows = earlier.rows.clone();
                let receipt = Receipt { resolved: earlier.resolved.or(Some(Resolved::Earlier)), ..earlier };
                Some(EffectResult { receipt: Some(receipt), result: Ok(rows) })
            }
            State::Failed { why, .. } => {
                let why = why.clone();
                Some(EffectResult { receipt: Some(earlier), result: Err(StepError::Failed { label, why }) })
            }
            State::Open | State::Unknown { .. } if self.effect_step.is_repeatable() => {
                self.receipt.resolved = Some(Resolved::Repeated);
                self.is_uncertain = true;
                None
            }
            State::Open | State::Unknown { .. } => {
                let why = INTERRUPTED.to_owned();
                self.receipt.state = State::Unknown { status: None, why: why.clone() };
                let result = self.resolve(StepError::Unknown { label, why }).await;
                self.receipt.settles = settles(&self.receipt);
                let effects = self.effect_step.reads.ctx.effects?;
                let closed = effects.receipts.close(&self.receipt).await;
                let result = result.and_then(|rows| closed.map(|()| rows).map_err(StepError::from));
                Some(EffectResult { receipt: Some(self.receipt.clone()), result })
            }
        }
    }

    /// Sends the request. If the outcome is unknown, it is resolved by a repetition or a probe.
    async fn send_and_resolve(&mut self) -> Result<Vec<Row>, StepError> {
        let result = self.send().await;
        let Err(error) = result else { return result };
        if !self.opened || !matches!(self.receipt.state, State::Unknown { .. }) {
            return Err(error);
        }
        // The API recognises a repetition. Its answer to the second request shows the outcome without a second effect.
        if self.effect_step.is_repeatable() {
            let repeated = self.send().await;
            if !matches!(self.receipt.state, State::Unknown { .. }) {
                self.receipt.resolved = Some(Resolved::Repeated);
                return repeated;
            }
        }
        self.resolve(error).await
    }

    /// Sends the request once and records the outcome in the receipt. A refusal after a departure without a certain answer leaves the
    /// outcome unknown, because the request of that departure may still arrive.
    async fn send(&mut self) -> Result<Vec<Row>, StepError> {
        let result = self.send_once().await;
        let (state, error) = match (&self.receipt.state, result) {
            (State::Failed { status, why }, Err(error)) if self.is_uncertain => {
                (State::Unknown { status: *status, why: why.clone() }, error)
            }
            (state, result) => {
                self.is_uncertain |= matches!(state, State::Unknown { .. });
                return result;
            }
        };
        self.receipt.state = state;
        Err(match error {
            StepError::Status { .. } | StepError::Refused { .. } | StepError::Upstream(_) => {
                verdict::unknown_outcome(&self.call.request.label(), &error.to_string())
            }
            error => error,
        })
    }

    async fn send_once(&mut self) -> Result<Vec<Row>, StepError> {
        let label = self.call.request.label();
        let ctx = self.effect_step.reads.ctx;
        let Some(effects) = ctx.effects else { return Err(StepError::NoReceipts) };
        let departure = Departure::new(effects.receipts, &ctx.cancel, &self.receipt.intent);
        let answer = departure.send(ctx.upstream, self.call.clone()).await;
        self.opened |= departure.is_opened();
        self.is_uncertain |= departure.was_uncertain();
        if let Some(withheld) = departure.into_withheld() {
            // The receipt may have been stored although the answer of the store was lost, so it is closed.
            self.opened |= matches!(withheld, Withheld::Receipts(_));
            // That nothing left is true of this process alone if another one owns the run and may send the request.
            self.receipt.state = match withheld {
                Withheld::TakenOver => State::Unknown { status: None, why: INTERRUPTED.to_owned() },
                _ => State::Failed { status: None, why: withheld.reason().to_owned() },
            };
            return Err(match withheld {
                Withheld::Cancelled => StepError::Cancelled,
                Withheld::TakenOver => StepError::TakenOver { label },
                Withheld::Receipts(error) => StepError::Receipts(error),
            });
        }
        match verdict::of_answer(&label, answer) {
            Verdict::Failed(state, error) | Verdict::Unknown(state, error) => {
                self.receipt.state = state;
                Err(error)
            }
            Verdict::Done(response) => self.read_answer(label, response).await,
        }
    }

    /// Decodes the rows of an answer with a successful status. The body may still report that the API refused the effect.
    async fn read_answer(&mut self, label: String, response: Response) -> Result<Vec<Row>, StepError> {
        self.effect_step.budget.add_bytes(response.body.len());
        let status = Some(response.status);
        // A GraphQL mutation may have run although the answer has errors: the answer also has data, or an internal error
        // occurred after the mutation.
        let is_graphql = matches!(self.effect_step.target.capability.transport, Transport::Graphql(_));
        let has_data_too = is_graphql && has_data(&response);
        let decoded = decode_off_thread(
            self.effect_step.reads.ctx,
            self.effect_step.target,
            response,
            self.args,
            ListPart::WHOLE,
        )
        .await;
        self.receipt.state = State::Done;
        match decoded {
            None => Err(StepError::Interrupted(label)),
            Some(Ok(decoded)) => {
                self.receipt.rows.clone_from(&decoded.rows);
                Ok(decoded.rows)
            }
            Some(Err(source)) => {
                let is_refused = matches!(source, DecodeError::Refused(_));
                let error = StepError::from_decode(label.clone(), source);
                let is_server_error = matches!(&error, StepError::Refused { problem: ApiProblem::Server, .. });
                let why = error.to_string();
                if is_refused && (has_data_too || (is_graphql && is_server_error)) {
                    self.receipt.state = State::Unknown { status, why: why.clone() };
                    return Err(StepError::Unknown { label, why });
                }
                if is_refused {
                    self.receipt.state = State::Failed { status, why };
                }
                Err(error)
            }
        }
    }

    /// Resolves an unknown outcome by the effect's probe. A probe that finds nothing leaves the outcome unknown, because the request
    /// may still arrive; a later look decides (`super::look_again`).
    async fn resolve(&mut self, error: StepError) -> Result<Vec<Row>, StepError> {
        // The probe needs a permit for its own call. If the effect kept its permit, an origin or session that allows one call
        // would deadlock.
        self.permit = None;
        let EffectStep { reads, budget, target, .. } = self.effect_step;
        let Some((capability, ProbeFinding::Happened(rows))) = probe::run(reads.ctx, budget, *target, self.args).await
        else {
            return Err(error);
        };
        self.receipt.resolved = Some(Resolved::Probe { capability });
        self.receipt.state = State::Done;
        self.receipt.rows.clone_from(&rows);
        Ok(rows)
    }
}

/// Returns whether the `data` of a GraphQL answer has a field that is not `null`.
fn has_data(response: &Response) -> bool {
    let body: Option<Value> = serde_json::from_slice(&response.body).ok();
    let data = body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_object);
    data.is_some_and(|data| data.values().any(|value| !value.is_null()))
}

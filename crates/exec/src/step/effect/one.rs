//! One effect, from the opening of its receipt to its closing.
//! Invariant: nothing leaves before the receipt is stored; the outcome of a request that left is resolved as far as
//! possible, even if the run is cancelled; an effect that an earlier attempt of the run completed is not repeated.

use base::{Digest, Response};
use catalog::{Args, BindInput, DecodeError, Row, Transport, bind};
use ports::receipts::{EffectId, Intent, Receipt, Resolved, State};
use ports::upstream::Call;
use serde_json::{Value, json};

use super::verdict::{self, Verdict};
use super::{EffectStep, probe};
use crate::budget::{CallPermit, Counted};
use crate::call::{Part, Target, decode_off};
use crate::error::{ApiProblem, StepError};

/// The receipt and the result of one effect.
pub struct EffectResult {
    /// `None` if no receipt was opened.
    pub receipt: Option<Receipt>,
    pub result: Result<Vec<Row>, StepError>,
}

impl From<StepError> for EffectResult {
    fn from(error: StepError) -> Self {
        Self { receipt: None, result: Err(error) }
    }
}

/// Performs one effect. The receipt is opened before the request leaves and closed with its outcome.
pub async fn perform(doing: &EffectStep<'_>, row: usize, args: &Args) -> EffectResult {
    let Some(effects) = doing.reads.ctx.effects else { return StepError::NoReceipts.into() };
    let id = EffectId { run: effects.run, step: doing.at, row };
    let once = doing.keyed().then(|| id.idempotency_key());
    let ask = Ask { fields: doing.reads.fields, once: once.as_deref(), ..Ask::new(args) };
    let Target { catalog, capability } = doing.target;
    let request = match bind(catalog, capability, &input) {
        Ok(request) => request,
        Err(error) => return StepError::from(error).into(),
    };
    let permit = doing.reads.allowance.permit(doing.reads.ctx, catalog).await;
    if let Err(error) = doing.reads.allowance.call(doing.reads.ctx, catalog, Counted::ByPlan) {
        return error.into();
    }
    let intent = Intent {
        id,
        catalog: catalog.id.clone(),
        capability: capability.name.clone(),
        label: doing.step.label.as_ref().map(ToString::to_string),
        request: request.label(),
        args: Digest::of(base::canonical(&json!(args)).as_bytes()),
        once,
        undo: doing.effect().and_then(|e| e.undo.clone()),
    };
    let earlier = match effects.receipts.open(&intent).await {
        Ok(earlier) => earlier,
        Err(error) => return StepError::from(error).into(),
    };
    let call =
        Call { tenant: doing.reads.ctx.tenant.clone(), request, repeatable: doing.repeatable(), pace: catalog.pace };
    let mut one = PendingEffect { doing, args, call, receipt: Receipt::open(intent), permit: Some(permit) };
    let result = match earlier {
        None => one.send_and_resolve().await,
        Some(earlier) => match one.resume(earlier).await {
            Some(known) => return known,
            None => one.send_and_resolve().await,
        },
    };
    match effects.receipts.close(&one.receipt).await {
        Ok(()) => EffectResult { receipt: Some(one.receipt), result },
        // The outcome is known in this process but not stored. No further effect may build on it.
        Err(error) => EffectResult { receipt: Some(one.receipt), result: result.and(Err(error.into())) },
    }
}

/// One effect in progress.
struct PendingEffect<'a> {
    doing: &'a EffectStep<'a>,
    args: &'a Args,
    call: Call,
    receipt: Receipt,
    /// The permits, held while the request is sent.
    permit: Option<CallPermit<'a>>,
}

impl PendingEffect<'_> {
    /// Handles a receipt of an earlier attempt of this run. Returns `Some` if nothing is left to do, and `None` if
    /// the API recognises repetitions and the request is to be sent again.
    async fn resume(&mut self, earlier: Receipt) -> Option<EffectResult> {
        let label = earlier.intent.request.clone();
        // The same step and row, but other arguments: the outcome of the earlier effect says nothing about this one.
        if earlier.intent.args != self.receipt.intent.args {
            let why = "the run was resumed, and what it read since is not what it had read".to_owned();
            return Some(EffectResult { receipt: Some(earlier), result: Err(StepError::Failed { label, why }) });
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
            State::Open | State::Unknown { .. } if self.doing.repeatable() => {
                self.receipt.resolved = Some(Resolved::Repeated);
                None
            }
            State::Open | State::Unknown { .. } => {
                let why = "the run was interrupted while it was under way".to_owned();
                self.receipt.state = State::Unknown { status: None, why: why.clone() };
                let result = self.resolve(StepError::Unknown { label, why }).await;
                let effects = self.doing.reads.ctx.effects?;
                let closed = effects.receipts.close(&self.receipt).await;
                let result = result.and_then(|rows| closed.map(|()| rows).map_err(StepError::from));
                Some(EffectResult { receipt: Some(self.receipt.clone()), result })
            }
        }
    }

    async fn send_and_resolve(&mut self) -> Result<Vec<Row>, StepError> {
        let result = self.send().await;
        let Err(error) = result else { return result };
        if !matches!(self.receipt.state, State::Unknown { .. }) {
            return Err(error);
        }
        // The API recognises a repetition, so sending the request again reveals the outcome.
        if self.doing.repeatable() {
            let again = self.send().await;
            if !matches!(self.receipt.state, State::Unknown { .. }) {
                self.receipt.resolved = Some(Resolved::Repeated);
                return again;
            }
        }
        self.resolve(error).await
    }

    async fn send(&mut self) -> Result<Vec<Row>, StepError> {
        let label = self.call.request.label();
        let answer = self.doing.reads.ctx.upstream.send(self.call.clone()).await;
        match verdict::of(&label, answer) {
            Verdict::Failed(state, error) | Verdict::Unknown(state, error) => {
                self.receipt.state = state;
                Err(error)
            }
            Verdict::Done(response) => self.answered(label, response).await,
        }
    }

    async fn answered(&mut self, label: String, response: Response) -> Result<Vec<Row>, StepError> {
        self.doing.budget.add_bytes(response.body.len());
        let status = Some(response.status);
        // A GraphQL mutation may have run although its answer reports errors.
        let graphql = matches!(self.doing.target.capability.transport, Transport::Graphql(_));
        let mixed = graphql && has_data(&response);
        let decoded = decode_off(self.doing.reads.ctx, self.doing.target, response, self.args, Part::WHOLE).await;
        self.receipt.state = State::Done;
        match decoded {
            None => Err(StepError::Interrupted(label)),
            Some(Ok(decoded)) => {
                self.receipt.rows.clone_from(&decoded.rows);
                Ok(decoded.rows)
            }
            Some(Err(source)) => {
                let refused = matches!(source, DecodeError::Refused(_));
                let error = StepError::from_decode(label.clone(), source);
                let inside = matches!(&error, StepError::Refused { problem: ApiProblem::Server, .. });
                let why = error.to_string();
                if refused && (mixed || (graphql && inside)) {
                    self.receipt.state = State::Unknown { status, why: why.clone() };
                    return Err(StepError::Unknown { label, why });
                }
                if refused {
                    self.receipt.state = State::Failed { status, why };
                }
                Err(error)
            }
        }
    }

    /// Asks the probe about an effect whose outcome is unknown.
    async fn resolve(&mut self, error: StepError) -> Result<Vec<Row>, StepError> {
        // The probe needs a permit of its own. Holding this one while waiting would deadlock if the origin allows a
        // single call.
        self.permit = None;
        let Some((capability, probed)) = probe::ask(self.doing, self.args).await else { return Err(error) };
        self.receipt.resolved = Some(Resolved::Probe { capability: capability.clone() });
        match probed {
            probe::ProbeResult::Happened(rows) => {
                self.receipt.state = State::Done;
                self.receipt.rows.clone_from(&rows);
                Ok(rows)
            }
            probe::ProbeResult::DidNotHappen => {
                let why = format!("`{capability}` does not find it, after: {error}");
                self.receipt.state = State::Failed { status: None, why: why.clone() };
                Err(StepError::Failed { label: self.call.request.label(), why })
            }
        }
    }
}

fn has_data(response: &Response) -> bool {
    let body: Option<Value> = serde_json::from_slice(&response.body).ok();
    let data = body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_object);
    data.is_some_and(|data| data.values().any(|value| !value.is_null()))
}

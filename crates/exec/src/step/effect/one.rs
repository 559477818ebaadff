//! One effect, from its receipt's opening to its closing.
//! Invariant: nothing leaves before the receipt is kept; what has left is followed to what can be known of it, also when the
//! run is told to stop; an effect that a former try of the run has done is not done again.

use base::{Digest, Response};
use catalog::{Args, Ask, DecodeError, Row, Transport, bind};
use ports::receipts::{EffectId, Intent, Receipt, Resolved, State};
use ports::upstream::Call;
use serde_json::{Value, json};

use super::verdict::{self, Verdict};
use super::{Doing, probe};
use crate::budget::{Counted, Place};
use crate::call::{Part, decode_off};
use crate::error::{ApiProblem, StepError};

pub struct Ended {
    /// None where it never came to be.
    pub receipt: Option<Receipt>,
    pub result: Result<Vec<Row>, StepError>,
}

impl From<StepError> for Ended {
    fn from(error: StepError) -> Self {
        Self { receipt: None, result: Err(error) }
    }
}

pub async fn perform(doing: &Doing<'_>, row: usize, args: &Args) -> Ended {
    let Some(effects) = doing.reads.ctx.effects else { return StepError::NoReceipts.into() };
    let id = EffectId { run: effects.run, step: doing.at, row };
    let once = doing.keyed().then(|| id.once());
    let ask = Ask { fields: doing.reads.fields, once: once.as_deref(), ..Ask::new(args) };
    let (catalog, capability) = doing.target;
    let request = match bind(catalog, capability, &ask) {
        Ok(request) => request,
        Err(error) => return StepError::from(error).into(),
    };
    let place = doing.reads.allowance.place(doing.reads.ctx, catalog).await;
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
    let mut one = One { doing, args, call, receipt: Receipt::open(intent), place: Some(place) };
    let result = match earlier {
        None => one.first().await,
        Some(earlier) => match one.again(earlier).await {
            Some(known) => return known,
            None => one.first().await,
        },
    };
    match effects.receipts.close(&one.receipt).await {
        Ok(()) => Ended { receipt: Some(one.receipt), result },
        // It is known here how it ended, and kept nowhere: no further effect may build on that.
        Err(error) => Ended { receipt: Some(one.receipt), result: result.and(Err(error.into())) },
    }
}

struct One<'a> {
    doing: &'a Doing<'a>,
    args: &'a Args,
    call: Call,
    receipt: Receipt,
    /// Held while it is sent.
    place: Option<Place<'a>>,
}

impl One<'_> {
    /// A receipt of an earlier try of this run: `Some` where nothing is left to do. What the API recognises is sent again.
    async fn again(&mut self, earlier: Receipt) -> Option<Ended> {
        let label = earlier.intent.request.clone();
        // The same place in the plan, and not the same effect: nothing that is known of that one holds for this one.
        if earlier.intent.args != self.receipt.intent.args {
            let why = "the run was resumed, and what it read since is not what it had read".to_owned();
            return Some(Ended { receipt: Some(earlier), result: Err(StepError::Failed { label, why }) });
        }
        match &earlier.state {
            State::Done => {
                let rows = earlier.rows.clone();
                let receipt = Receipt { resolved: earlier.resolved.or(Some(Resolved::Earlier)), ..earlier };
                Some(Ended { receipt: Some(receipt), result: Ok(rows) })
            }
            State::Failed { why, .. } => {
                let why = why.clone();
                Some(Ended { receipt: Some(earlier), result: Err(StepError::Failed { label, why }) })
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
                let kept = effects.receipts.close(&self.receipt).await;
                let result = result.and_then(|rows| kept.map(|()| rows).map_err(StepError::from));
                Some(Ended { receipt: Some(self.receipt.clone()), result })
            }
        }
    }

    async fn first(&mut self) -> Result<Vec<Row>, StepError> {
        let result = self.send().await;
        let Err(error) = result else { return result };
        if !matches!(self.receipt.state, State::Unknown { .. }) {
            return Err(error);
        }
        // The API recognises it, so sending it again tells what came of it.
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
        self.doing.budget.came(response.body.len());
        let status = Some(response.status);
        // A mutation may have run although something in its answer failed.
        let graphql = matches!(self.doing.target.1.transport, Transport::Graphql(_));
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

    /// Asks the probe about an effect of which nobody knows.
    async fn resolve(&mut self, error: StepError) -> Result<Vec<Row>, StepError> {
        // The probe takes a place of its own, and there may be only one.
        self.place = None;
        let Some((capability, probed)) = probe::ask(self.doing, self.args).await else { return Err(error) };
        self.receipt.resolved = Some(Resolved::Probe { capability: capability.clone() });
        match probed {
            probe::Probed::Happened(rows) => {
                self.receipt.state = State::Done;
                self.receipt.rows.clone_from(&rows);
                Ok(rows)
            }
            probe::Probed::Not => {
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

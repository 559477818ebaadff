//! The port of receipts: the durable evidence of each effect.
//! Invariant: when `open` returns, the receipt survives a power cut, so every request that was sent for an effect has
//! a receipt. If a receipt is still open after a crash, the outcome of its effect is unknown.

use std::fmt;

use async_trait::async_trait;
use base::{CatalogId, Digest, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Storage of the receipts of one server.
#[async_trait]
pub trait Receipts: Send + Sync {
    /// Returns the receipt that an earlier attempt of the same run left for this effect.
    async fn earlier(&self, id: &EffectId) -> Result<Option<Receipt>, Error>;

    /// Records an effect immediately before its request leaves, and again before each further departure of the same
    /// request. The receipt and the check that the run still belongs to this process and is not cancelled are one
    /// transaction.
    async fn open(&self, intent: &EffectIntent) -> Result<Opened, Error>;

    /// Replaces an open receipt by this one, which has the outcome.
    async fn close(&self, receipt: &Receipt) -> Result<(), Error>;
}

/// The answer to the wish to begin an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The receipt is stored, and the request may leave.
    Stored,
    /// The run was cancelled, so nothing was stored.
    Cancelled,
    /// Another process owns the run now, or the run has ended, so nothing was stored.
    TakenOver,
}

/// Identifies one effect of one run. A resumed run gives each effect the same id again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId {
    /// The run of the program.
    pub run: RunId,
    /// The step's number in the plan, from 0.
    pub step: usize,
    /// The number of the input row for which the step has this effect, from 0. An effect of a step without input has
    /// the number 0.
    pub row: usize,
}

impl EffectId {
    /// Returns the idempotency key, by which an API recognises a repeated request. The key is made of the effect id
    /// alone, so a resumed run sends the same key.
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}-{}", self.run, self.step, self.row)
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.step, self.row)
    }
}

/// The description of an effect, which is stored before the request is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectIntent {
    pub id: EffectId,
    /// The catalog of the capability.
    pub catalog: CatalogId,
    /// The name of the capability that is called.
    pub capability: String,
    /// The name that the program gave to the step, if it gave one.
    pub label: Option<String>,
    /// The method and address of the request, without query values.
    pub request: String,
    /// The digest of the arguments. Two effects of one capability with equal digests have the same arguments.
    pub args: Digest,
    /// The idempotency key, if the API takes one. With this key the request can be repeated safely.
    pub once: Option<String>,
    /// The capability that undoes this effect, if the catalog names one.
    pub undo: Option<String>,
    /// The data for a later look, if the catalog names a probe. It is stored beside the receipt and not in it, so that the arguments
    /// are in no result.
    #[serde(skip)]
    pub settlement: Option<Box<Settlement>>,
}

/// The data for a later look, which finds out whether an effect with a lost answer happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    /// The digest of the catalog that has the capability and its probe.
    pub catalog: Digest,
    /// The name of the capability that was called.
    pub capability: String,
    /// The arguments of the effect.
    pub args: Map<String, Value>,
    /// The time after the end of the request, in milliseconds, after which the API has done what it will do.
    pub settles_ms: u64,
}

/// The evidence of one effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The description of the effect from before the request was sent.
    pub intent: EffectIntent,
    pub state: State,
    /// The rows of the API's answer, or the row that the probe returned.
    pub rows: Vec<Map<String, Value>>,
    /// How the outcome was determined, if the API's first answer was lost or inconclusive.
    pub resolved: Option<Resolved>,
    /// The outcome is unknown and is looked for again. The receipt is closed then, whether or not a caller asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settles: bool,
}

/// The known outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The request may be in progress, or a crash interrupted it.
    Open,
    /// The effect happened.
    Done,
    /// The effect did not happen.
    Failed { status: Option<u16>, why: String },
    /// The effect may have happened: the answer was lost or is inconclusive.
    Unknown { status: Option<u16>, why: String },
}

/// How the outcome of an effect was determined after its first answer was lost or inconclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// This read returned the result of the effect, or showed that there is none.
    Probe { capability: String },
    /// The request was sent again with the idempotency key, and the API answered.
    Repeated,
    /// An earlier attempt of the same run stored the receipt. This attempt sent no request.
    Earlier,
}

impl Receipt {
    /// Returns the open receipt of an effect whose request is not yet sent.
    pub fn open(intent: EffectIntent) -> Self {
        let settles = intent.settlement.is_some();
        Self { intent, state: State::Open, rows: Vec::new(), resolved: None, settles }
    }
}

impl State {
    /// Returns how certain the state is. A state is replaced only by one that is at least as certain. `Done` is above `Failed`,
    /// because an answer of the API proves more than a read that found nothing.
    pub fn certainty(&self) -> u8 {
        match self {
            State::Open => 0,
            State::Unknown { .. } => 1,
            State::Failed { .. } => 2,
            State::Done => 3,
        }
    }

    /// Returns whether the effect is known to have happened, or not to have happened.
    pub fn is_certain(&self) -> bool {
        matches!(self, State::Failed { .. } | State::Done)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Open => f.write_str("open"),
            State::Done => f.write_str("done"),
            State::Failed { status: Some(status), .. } => write!(f, "failed ({status})"),
            State::Failed { why, .. } => write!(f, "failed ({why})"),
            State::Unknown { why, .. } => write!(f, "unknown ({why})"),
        }
    }
}

/// Why a receipt could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A fault of the storage. The cause is logged, and the caller sees only this message. After a failed `close` the
    /// receipt may still be open.
    #[error("receipts cannot be kept")]
    Unavailable(#[source] crate::Cause),
}

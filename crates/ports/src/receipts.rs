//! The port of receipts: the durable evidence of each effect.
//! Invariant: when `open` returns, the receipt survives a power cut, so an effect that may have left is never
//! forgotten; a receipt that is still open after a crash means that the outcome is unknown.

use std::fmt;

use async_trait::async_trait;
use base::{CatalogId, Digest, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Storage of receipts.
#[async_trait]
pub trait Receipts: Send + Sync {
    /// Records that this effect is about to happen. If a receipt exists, it belongs to an earlier attempt of the same
    /// run: it is returned unchanged, and nothing is written.
    async fn open(&self, intent: &Intent) -> Result<Option<Receipt>, Error>;

    /// Records the outcome of an effect whose receipt is open.
    async fn close(&self, receipt: &Receipt) -> Result<(), Error>;
}

/// Identifies one effect of one run. The id stays the same when the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId {
    /// The run of the program.
    pub run: RunId,
    /// The step's number in the plan, from 0.
    pub step: usize,
    /// The row's number in the step's input, from 0. An effect without rows has 0.
    pub row: usize,
}

impl EffectId {
    /// Returns the idempotency key, by which an API recognises a repetition. It is made of the id alone, so a resumed run
    /// sends the same key.
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}-{}", self.run, self.step, self.row)
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.step, self.row)
    }
}

/// An effect that is about to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub id: EffectId,
    /// The catalog of the capability.
    pub catalog: CatalogId,
    /// The name of the capability that is called.
    pub capability: String,
    /// The name that the program gave to the step.
    pub label: Option<String>,
    /// Method and address, without query values.
    pub request: String,
    /// The digest of the arguments. Receipts with equal digests did the same thing.
    pub args: Digest,
    /// The idempotency key, if the API takes one. A key makes it safe to send the request again.
    pub once: Option<String>,
    /// The capability that undoes this effect.
    pub undo: Option<String>,
}

/// The evidence of one effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The effect, as it was recorded before the request left.
    pub intent: Intent,
    pub state: State,
    /// The rows of the API's answer, or the row that the probe found.
    pub rows: Vec<Map<String, Value>>,
    /// How the outcome was found out, if the API's own answer did not say.
    pub resolved: Option<Resolved>,
}

/// The outcome of an effect, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The request may be under way, or a crash interrupted it.
    Open,
    /// The effect happened.
    Done,
    /// The effect did not happen.
    Failed { status: Option<u16>, why: String },
    /// The effect may have happened: the answer was lost or is inconclusive.
    Unknown { status: Option<u16>, why: String },
}

/// How the outcome of an effect was found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// By this read, which found the effect's result or found that it is missing.
    Probe { capability: String },
    /// By sending the request again with the idempotency key.
    Repeated,
    /// By the receipt of an earlier attempt of the same run. Nothing was sent.
    Earlier,
}

impl Receipt {
    /// Returns the receipt of an effect that is about to happen.
    pub fn open(intent: Intent) -> Self {
        Self { intent, state: State::Open, rows: Vec::new(), resolved: None }
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
    /// A fault of ours: logged in full, shown as this line. After a failed `close` the receipt may still be open.
    #[error("receipts cannot be kept")]
    Unavailable(#[source] crate::Cause),
}

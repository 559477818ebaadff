//! Receipts: the durable evidence of each effect.
//! Invariant: when `open` returns, the receipt survives a power cut, so an effect that may have left is never forgotten; a
//! receipt that is open after a crash means that nobody knows.

use std::fmt;

use async_trait::async_trait;
use base::{CatalogId, Digest, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[async_trait]
pub trait Receipts: Send + Sync {
    /// Keeps that this effect is about to happen. One that is there already belongs to an earlier try of the same run, and is
    /// returned as it stands; nothing is changed then.
    async fn open(&self, intent: &Intent) -> Result<Option<Receipt>, Error>;

    /// Keeps what came of it.
    async fn close(&self, receipt: &Receipt) -> Result<(), Error>;
}

/// One effect of one run: the same when the run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId {
    pub run: RunId,
    /// Of the plan, from 0.
    pub step: usize,
    /// Of the step's input, from 0; 0 where the effect is one.
    pub row: usize,
}

impl EffectId {
    /// By what an API recognises the effect should it come twice.
    pub fn once(&self) -> String {
        format!("{}-{}-{}", self.run, self.step, self.row)
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.step, self.row)
    }
}

/// What is about to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub id: EffectId,
    pub catalog: CatalogId,
    pub capability: String,
    /// The name the program gave the step.
    pub label: Option<String>,
    /// Method and address, without query values.
    pub request: String,
    /// Of the values it is called with: two receipts with the same digest did the same thing.
    pub args: Digest,
    /// By what the API recognises it should it come twice, where it does.
    pub once: Option<String>,
    /// The capability that takes it back.
    pub undo: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub intent: Intent,
    pub state: State,
    /// What the API answered, or what the probe found.
    pub rows: Vec<Map<String, Value>>,
    /// How it was found out, where the API's own answer did not tell.
    pub resolved: Option<Resolved>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It may be under way, or a crash came between.
    Open,
    Done,
    /// It did not happen.
    Failed {
        status: Option<u16>,
        why: String,
    },
    /// It may have happened: the answer was lost, or does not say.
    Unknown {
        status: Option<u16>,
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// By this read: it found what the effect makes, or found that it is not there.
    Probe { capability: String },
    /// By sending it again with the key that the API recognises.
    Repeated,
    /// By the receipt of an earlier try of the same run; nothing was sent.
    Earlier,
}

impl Receipt {
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

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ours: logged in full, shown as this line. After a `close` the receipt may still be open.
    #[error("receipts cannot be kept")]
    Unavailable(#[source] crate::Cause),
}

//! What a call to run asks for, and what it comes to.
//! Invariant: data only; a result is here only after it is durable.

use std::sync::Arc;

use base::{Diagnostic, Digest, RunId, Slot};
use exec::Outcome;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    pub session: String,
    /// May be left out with a `plan_commit_ref`.
    pub program: Option<String>,
    /// What a dry run of the same plan gave.
    pub plan_commit_ref: Option<String>,
    /// Run a plan whose verdict is `review` all the same.
    pub force: bool,
    /// With `force`: the same id returns what the first call with it did.
    pub request_id: Option<String>,
    /// `false`: answer at once with a handle.
    pub wait: Option<bool>,
}

/// What a call to run comes to.
#[derive(Debug)]
pub enum RunAnswer {
    Finished(Arc<Ran>),
    /// It goes on without the caller.
    Running(Operation),
}

impl RunAnswer {
    /// The result, where there is one already.
    pub fn finished(self) -> Option<Arc<Ran>> {
        match self {
            RunAnswer::Finished(ran) => Some(ran),
            RunAnswer::Running(_) => None,
        }
    }
}

#[derive(Debug)]
pub struct Ran {
    pub slot: Slot,
    /// Digest of the plan that ran.
    pub plan: Digest,
    pub program: String,
    /// What was mended on the way to it.
    pub notes: Vec<Diagnostic>,
    pub outcome: Outcome,
    /// The run's number in its session: the last part of `plasm://session/s0/r/3`.
    pub number: u64,
    pub run: RunId,
    /// Handles for what was left unread.
    pub pages: Vec<More>,
    /// Nothing ran: this is what an earlier call with the same commit or request id did.
    pub replayed: bool,
}

/// What was left unread of one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct More {
    /// Of the result.
    pub label: String,
    /// `s0_pg1`
    pub handle: String,
    /// The steps of the program that the rest has not been through.
    pub before: Option<String>,
}

/// A run that goes on, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub slot: Slot,
    /// `s0_o1`
    pub handle: String,
    /// The same by a name that is the same in every connection of its tenant.
    pub task: String,
    pub told: Told,
    /// It was told to stop, and will before its next effect.
    pub stopping: bool,
    /// Another process has it, and was last heard of so many seconds ago.
    pub silent: Option<u64>,
}

impl Operation {
    /// An owner that was silent for so many seconds is dead: whoever asks for its run takes it over.
    pub const DEAD_AFTER: u64 = 20;
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub steps_done: usize,
    pub steps: usize,
    pub effects_done: usize,
}

impl From<exec::Told> for Told {
    fn from(told: exec::Told) -> Self {
        Self { steps_done: told.steps_done, steps: told.steps, effects_done: told.effects_done }
    }
}

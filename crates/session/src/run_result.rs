//! The request and the answer of `plasm_run`.
//! Invariant: data only; a result appears here only after it is durable.

use std::sync::Arc;

use base::{Diagnostic, Digest, ExecutionId, RunId, Slot};
use exec::Outcome;
use serde::{Deserialize, Serialize};

/// A program to run.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// A slot or a canonical session id.
    pub session: String,
    /// May be left out with a `plan_commit_ref`.
    pub program: Option<String>,
    /// The approval that a dry run of the same plan gave.
    pub plan_commit_ref: Option<String>,
    /// Run a plan with the verdict `review` without a plan commit.
    pub force: bool,
    /// With `force`: a second call with the same id gets the outcome of the first.
    pub request_id: Option<String>,
    /// `false` answers at once with a handle.
    pub wait: Option<bool>,
    /// The script run that asks for this program. When the script run ends, no further effect of the program leaves.
    pub parent: Option<ExecutionId>,
}

/// The answer of `plasm_run`.
#[derive(Debug)]
pub enum RunAnswer {
    /// The run ended, and its result is stored.
    Finished(Arc<RunResult>),
    /// The run continues without its caller.
    Running(DetachedRun),
}

impl RunAnswer {
    /// Returns the result, if the run has ended.
    pub fn finished(self) -> Option<Arc<RunResult>> {
        match self {
            RunAnswer::Finished(result) => Some(result),
            RunAnswer::Running(_) => None,
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    pub slot: Slot,
    /// The digest of the plan that ran.
    pub plan: Digest,
    pub program: String,
    /// Corrections that were made while compiling the program.
    pub notes: Vec<Diagnostic>,
    /// The rows, receipts and step times.
    pub outcome: Outcome,
    /// The run's number in its session: the last part of `plasm://session/s0/r/3`.
    pub number: u64,
    pub run: RunId,
    /// Handles for lists that were not read to their end.
    pub pages: Vec<PageHandle>,
    /// Nothing ran: this is the result of an earlier call with the same plan commit or request id.
    pub replayed: bool,
}

/// The rest of an unfinished result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHandle {
    /// The label of the result.
    pub label: String,
    /// The handle, such as `s0_pg1`.
    pub handle: String,
    /// The steps of the program that were not applied to the rest of the list.
    pub unapplied_steps: Option<String>,
}

/// A run that continues without its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedRun {
    pub slot: Slot,
    /// The handle, such as `s0_o1`.
    pub handle: String,
    /// The same operation under a name that is valid in every connection of its tenant.
    pub task: String,
    pub progress: RunProgress,
    /// The run was cancelled and will stop before its next effect.
    pub stopping: bool,
    /// Another process drives the run, and wrote its last heartbeat this many seconds ago.
    pub silent_seconds: Option<u64>,
}

impl DetachedRun {
    /// An owner without a heartbeat for this many seconds is dead. The next caller that asks for its run takes it
    /// over.
    pub const DEAD_AFTER: u64 = 20;
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    pub steps_done: usize,
    /// The number of steps of the plan.
    pub steps: usize,
    /// The number of effects that succeeded.
    pub effects_done: usize,
}

impl From<exec::StepProgress> for RunProgress {
    fn from(progress: exec::StepProgress) -> Self {
        Self { steps_done: progress.steps_done, steps: progress.steps, effects_done: progress.effects_done }
    }
}

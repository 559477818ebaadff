//! Runs that go on without their caller: watched at a session's address, or asked for as tasks of MCP.

use access::Caller;
use session::{DetachedRun, RunAnswer, TaskState};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

/// Waits until the state of an operation differs from the one that was seen last, or the operation has ended.
#[derive(Debug, Clone)]
pub struct WatchOperation {
    /// The id of the logical session.
    pub session: String,
    /// The handle of the operation, such as `s0_o1`.
    pub handle: String,
    /// The state that the caller knows. `None` lets the call answer at once.
    pub last_seen: Option<DetachedRun>,
}

impl Call for WatchOperation {
    const NAME: &'static str = "watch_operation";
    type Answer = RunAnswer;

    async fn run(&self, app: &App, caller: &Caller) -> Result<RunAnswer, Error> {
        Ok(app.service().watch(caller, (&self.session, &self.handle), self.last_seen.as_ref()).await?)
    }

    fn summary(&self, result: &Result<RunAnswer, Error>) -> CallSummary {
        match result {
            Ok(RunAnswer::Running(_)) => CallSummary { outcome: "running", ..CallSummary::default() },
            ended_or_failed => CallSummary::of(ended_or_failed),
        }
    }
}

/// The state of a task.
#[derive(Debug, Clone)]
pub struct GetTask {
    /// The name of the task, which is valid on every connection of its tenant.
    pub task: String,
}

impl Call for GetTask {
    const NAME: &'static str = "get_task";
    type Answer = TaskState;

    async fn run(&self, app: &App, caller: &Caller) -> Result<TaskState, Error> {
        Ok(app.service().task(caller, &self.task, false).await?)
    }
}

/// Stops a task before its next effect. A task that has ended stays as it is.
#[derive(Debug, Clone)]
pub struct CancelTask {
    pub task: String,
}

impl Call for CancelTask {
    const NAME: &'static str = "cancel_task";
    type Answer = TaskState;

    async fn run(&self, app: &App, caller: &Caller) -> Result<TaskState, Error> {
        Ok(app.service().task(caller, &self.task, true).await?)
    }
}

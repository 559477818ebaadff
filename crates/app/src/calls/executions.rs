//! Script runs after they were started: `get_execution`, `get_execution_output`, `cancel_execution`, `list_executions`.

use access::Caller;
use base::ExecutionId;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Execution, ExecutionIdCell, OutputPage, OutputRequest};

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetExecution {
    pub execution_id: String,
    #[serde(default)]
    pub wait_ms: u64,
}

impl Call for GetExecution {
    const NAME: &'static str = "get_execution";
    type Answer = Execution;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Execution, Error> {
        Ok(app.service().wait_for_execution(caller, &self.execution_id, self.wait_ms).await?)
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetExecutionOutput {
    pub execution_id: String,
    #[serde(default)]
    pub line_offset: Option<u64>,
    #[serde(default)]
    pub line_limit: Option<u64>,
    #[serde(default)]
    pub byte_offset: Option<u64>,
    #[serde(default)]
    pub byte_limit: Option<u64>,
}

impl Call for GetExecutionOutput {
    const NAME: &'static str = "get_execution_output";
    type Answer = OutputPage;

    async fn run(&self, app: &App, caller: &Caller) -> Result<OutputPage, Error> {
        let request = OutputRequest {
            line_offset: self.line_offset,
            line_limit: self.line_limit,
            byte_offset: self.byte_offset,
            byte_limit: self.byte_limit,
        };
        Ok(app.service().execution_output(caller, &self.execution_id, &request).await?)
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelExecution {
    pub execution_id: String,
}

impl Call for CancelExecution {
    const NAME: &'static str = "cancel_execution";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        Ok(app.service().cancel_execution(caller, &self.execution_id).await?)
    }
}

/// Ends the run of a `run_js` call that its client withdrew before it learned the run's id.
#[derive(Debug, Clone)]
pub struct CancelWithdrawnRun {
    /// Has the id of the run, if the run was accepted.
    pub id_cell: ExecutionIdCell,
}

impl Call for CancelWithdrawnRun {
    const NAME: &'static str = "cancel_withdrawn_run";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        Ok(app.service().cancel_unanswered_js(caller, &self.id_cell).await?)
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListExecutions {
    // The page starts behind this execution. Only HTTP pages through the list.
    #[serde(skip)]
    pub after: Option<ExecutionId>,
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// The answer to [`ListExecutions`].
#[derive(Debug)]
pub struct ListedExecutions {
    /// The newest first.
    pub executions: Vec<Execution>,
    /// The execution after which the next page begins. `None` on the last page.
    pub next: Option<ExecutionId>,
}

impl ListExecutions {
    /// The length of a list whose request has no limit.
    pub const DEFAULT_LIMIT: usize = 50;
    /// The longest list.
    pub const MAX_LIMIT: usize = 1_000;
}

impl Call for ListExecutions {
    const NAME: &'static str = "list_executions";
    type Answer = ListedExecutions;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ListedExecutions, Error> {
        let limit = self.limit.unwrap_or(Self::DEFAULT_LIMIT).clamp(1, Self::MAX_LIMIT);
        let (executions, next) = app.service().executions_page(caller, self.after, limit).await?;
        Ok(ListedExecutions { executions, next })
    }
}

//! `run_js`: runs JavaScript or TypeScript on a heap that outlives the call.

use std::collections::BTreeMap;

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Execution, ExecutionIdCell, OutputPage, OutputRequest, RunJsRequest, SessionTarget};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

/// Bytes of console output that the answer carries. The rest is read with `get_execution_output`.
const SHOWN_OUTPUT_BYTES: u64 = 4_000;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunJs {
    pub code: String,
    /// Key to start from; "" is fresh.
    #[serde(default)]
    pub heap: Option<String>,
    /// Goes on from its heap.
    #[serde(default)]
    pub logical_session_ref: Option<String>,
    #[serde(default)]
    pub tags: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub require_heap: bool,
    #[serde(default)]
    pub wait_ms: Option<u64>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub memory_mb: Option<u64>,
    // Filled in by the entry point, never by the client.
    #[serde(skip)]
    pub connection: ConnectionScope,
}

/// The part of a call's connection that concerns scripts.
#[derive(Debug, Clone, Default)]
pub struct ConnectionScope {
    /// The session that calls of this connection mean when they name none: `X-MCP-Session-Id`.
    pub session_name: Option<String>,
    /// The headers that the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Receives the id of the run before it can start, so that a client that withdraws the call ends the run too.
    pub id_cell: Option<ExecutionIdCell>,
}

impl ConnectionScope {
    /// Adds the cell that receives the id of the run.
    #[must_use]
    pub fn with_id_cell(self, id_cell: Option<ExecutionIdCell>) -> Self {
        Self { id_cell, ..self }
    }

    /// Returns the session that a call means: its reference, else the connection's name.
    pub(super) fn target(&self, reference: Option<&str>) -> SessionTarget {
        match (reference, &self.session_name) {
            (Some(reference), _) => SessionTarget::Logical(reference.to_owned()),
            (None, Some(name)) => SessionTarget::Named(name.clone()),
            (None, None) => SessionTarget::None,
        }
    }
}

/// A run with the beginning of its console output.
#[derive(Debug)]
pub struct RunJsAnswer {
    pub execution: Execution,
    /// The first page of the console output. `None` if nothing was printed.
    pub output: Option<OutputPage>,
}

impl Call for RunJs {
    const NAME: &'static str = "run_js";
    type Answer = RunJsAnswer;

    async fn run(&self, app: &App, caller: &Caller) -> Result<RunJsAnswer, Error> {
        let request = RunJsRequest {
            code: self.code.clone(),
            heap: self.heap.clone(),
            session: self.connection.target(self.logical_session_ref.as_deref()),
            tags: self.tags.clone(),
            require_heap: self.require_heap,
            wait_ms: self.wait_ms,
            timeout_ms: self.timeout_ms,
            memory_mb: self.memory_mb,
            headers: self.connection.headers.clone(),
            id_cell: self.connection.id_cell.clone(),
        };
        let execution = app.service().run_js(caller, &request).await?;
        let mut output = None;
        if execution.output_bytes > 0 {
            let beginning = OutputRequest {
                byte_offset: Some(0),
                byte_limit: Some(SHOWN_OUTPUT_BYTES),
                ..OutputRequest::default()
            };
            output = Some(app.service().execution_output(caller, &execution.id.to_string(), &beginning).await?);
        }
        Ok(RunJsAnswer { execution, output })
    }

    fn summary(&self, result: &Result<RunJsAnswer, Error>) -> CallSummary {
        let outcome = result.as_ref().map_or_else(Error::code, |answer| answer.execution.state.as_str());
        let slot = self.logical_session_ref.clone().filter(|_| result.is_ok());
        CallSummary { outcome, slot, record: None }
    }
}

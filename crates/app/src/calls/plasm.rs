//! `plasm`: plans a program and shows the plan; no API is called.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{CallRecord, PlanRequest, PlannedProgram};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plasm {
    /// From plasm_context (s0).
    pub logical_session_ref: String,
    pub program: String,
    // A model may give its reason for the call, which is only logged.
    #[serde(default)]
    pub reasoning: Option<String>,
}

impl Call for Plasm {
    const NAME: &'static str = "plasm";
    type Answer = PlannedProgram;

    async fn run(&self, app: &App, caller: &Caller) -> Result<PlannedProgram, Error> {
        if let Some(reasoning) = &self.reasoning {
            tracing::debug!(reasoning, "the caller gave a reason");
        }
        let request = PlanRequest { session: self.logical_session_ref.clone(), program: self.program.clone() };
        Ok(app.service().plan(caller, &request).await?)
    }

    fn summary(&self, result: &Result<PlannedProgram, Error>) -> CallSummary {
        let record = CallRecord::default().with_program(&self.program);
        let summary = CallSummary::of(result);
        match result {
            Ok(planned) => {
                summary.with_slot(planned.slot).with_record(&self.logical_session_ref, record.with_plan(planned))
            }
            Err(_) => summary.with_record(&self.logical_session_ref, record),
        }
    }
}

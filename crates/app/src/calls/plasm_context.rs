//! `plasm_context`: opens the session of an intent, or adds seeds to it.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{CallRecord, OpenRequest, OpenedSession, SeedRequest};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlasmContext {
    /// The task, in one stable phrase; the same finds the same session.
    pub intent: String,
    pub seeds: Vec<SeedArgument>,
    /// More writes to teach.
    #[serde(default)]
    pub ranked_capabilities: Vec<String>,
    /// Send the table again.
    #[serde(default)]
    pub replay: bool,
    /// Move to the newest catalogs.
    #[serde(default)]
    pub refresh: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedArgument {
    #[serde(alias = "entry_id")]
    pub api: String,
    pub entity: String,
    /// Its writes by name; * for all.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

impl SeedArgument {
    pub(super) fn to_request(&self) -> SeedRequest {
        SeedRequest { api: self.api.clone(), entity: self.entity.clone(), capabilities: self.capabilities.clone() }
    }
}

impl PlasmContext {
    fn to_request(&self) -> OpenRequest {
        OpenRequest {
            intent: self.intent.clone(),
            seeds: self.seeds.iter().map(SeedArgument::to_request).collect(),
            ranked: self.ranked_capabilities.clone(),
            replay: self.replay,
            refresh: self.refresh,
        }
    }
}

impl Call for PlasmContext {
    const NAME: &'static str = "plasm_context";
    type Answer = OpenedSession;

    async fn run(&self, app: &App, caller: &Caller) -> Result<OpenedSession, Error> {
        Ok(app.service().open(caller, &self.to_request()).await?)
    }

    fn summary(&self, result: &Result<OpenedSession, Error>) -> CallSummary {
        let summary = CallSummary::of(result);
        // A call that opened nothing belongs to no session.
        let Ok(opened) = result else { return summary };
        let record = CallRecord::default().with_seeds(&self.to_request().seeds);
        summary.with_slot(opened.slot).with_record(&opened.session.to_string(), record)
    }
}

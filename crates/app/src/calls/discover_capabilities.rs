//! `discover_capabilities`: finds the entities that a goal needs. Finding nothing is an answer, not an error.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{DiscoverRequest, DiscoveryAnswer};

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverCapabilities {
    /// The whole goal.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub intent: String,
    /// Answer a decision with options.
    #[serde(default)]
    pub typed: bool,
    /// 8; at most 32.
    #[serde(default, deserialize_with = "crate::number::row_count")]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Only these.
    #[serde(default)]
    pub apis: Option<Vec<String>>,
}

impl Call for DiscoverCapabilities {
    const NAME: &'static str = "discover_capabilities";
    type Answer = DiscoveryAnswer;

    async fn run(&self, app: &App, caller: &Caller) -> Result<DiscoveryAnswer, Error> {
        let request = DiscoverRequest {
            intent: self.intent.clone(),
            apis: self.apis.clone().unwrap_or_default(),
            limit: self.limit,
        };
        Ok(app.service().discover(caller, &request)?)
    }
}

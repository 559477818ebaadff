//! `discover_capabilities`: finds the entities that a goal needs. Finding nothing is an answer, not an error.

use access::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
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
    #[serde(default, deserialize_with = "row_count")]
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

/// Reads a number of rows: `5`, `5.0` and `5e0` are the same integer to JSON Schema, so each is accepted. A number that is too
/// large to count with becomes the largest one, because both ask for all rows.
fn row_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as usize)),
        Some(_) => Err(serde::de::Error::custom("it takes a whole number from 0")),
    }
}

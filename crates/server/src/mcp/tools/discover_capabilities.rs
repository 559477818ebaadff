//! `discover_capabilities`: which entities a goal needs.
//! Invariant: an answer of rows is text; a typed one is JSON and the same as text. Finding nothing is no error.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{DiscoverRequest, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::{found, text};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole goal.
    intent: String,
    /// Answer a decision with options.
    #[serde(default)]
    typed: bool,
    /// 8; at most 32.
    #[serde(default)]
    limit: Option<usize>,
    /// Only these.
    #[serde(default)]
    apis: Option<Vec<String>>,
}

pub fn tool() -> Tool {
    describe(
        Name::DiscoverCapabilities,
        "Find what a goal needs",
        "Find the {api, entity} rows that a goal needs. One call per goal with one intent; merge the rows you need into one \
         `seeds` of plasm_context.",
        schema::of::<Arguments>(),
        true,
    )
}

pub fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::DiscoverCapabilities, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let request = DiscoverRequest { intent: given.intent, apis: given.apis.unwrap_or_default(), limit: given.limit };
    let discovered = match service.discover(caller, &request) {
        Ok(discovered) => discovered,
        Err(error) => return Answer::failed(&error),
    };
    if given.typed {
        let typed = discovered.found.decide();
        let meta = meta::discovered(typed.options.len(), typed.omitted);
        return Answer::structured(found::decision(&typed, &discovered), Some(meta));
    }
    let meta = meta::discovered(discovered.found.rows.len(), discovered.found.omitted);
    Answer::without_session(text::discovered(&discovered), Some(meta))
}

//! `plasm_context`: open a session, or teach it more.
//! Invariant: the answer is text; the ref in it is the caller's own slot.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Call, OpenRequest, SeedRequest, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task, in one stable phrase; the same finds the same session.
    intent: String,
    seeds: Vec<SeedArgument>,
    /// More writes to teach.
    #[serde(default)]
    ranked_capabilities: Vec<String>,
    /// Send the table again.
    #[serde(default)]
    replay: bool,
    /// Move to the newest catalogs.
    #[serde(default)]
    refresh: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SeedArgument {
    #[serde(alias = "entry_id")]
    api: String,
    entity: String,
    /// Its writes by name; * for all.
    #[serde(default)]
    capabilities: Vec<String>,
}

pub fn tool() -> Tool {
    describe(
        Name::PlasmContext,
        "Open a session",
        "Open a session over APIs, or add entities to it; call this first. Answers a logical_session_ref (s0) and a table of the \
         expressions you may write. Merge all seeds of a task into one call.",
        schema::of::<Arguments>(),
        false,
    )
}

pub async fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::PlasmContext, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let seed = |s: SeedArgument| SeedRequest { api: s.api, entity: s.entity, capabilities: s.capabilities };
    let seeds = given.seeds.into_iter().map(seed).collect();
    let Arguments { intent, ranked_capabilities: ranked, replay, refresh, .. } = given;
    let request = OpenRequest { intent, seeds, ranked, replay, refresh };
    match service.open(caller, &request).await {
        Ok(opened) => {
            let call = Call::new(Name::PlasmContext.as_str()).with_seeds(&request.seeds);
            Answer::text(opened.slot, text::opened(&opened), Some(meta::opened(caller, &opened)))
                .traced(&opened.session.to_string(), call)
        }
        Err(error) => Answer::failed(&error),
    }
}

//! `plasm_context`: open a session, or teach it more.
//! Invariant: the answer is text; the ref in it is the caller's own slot.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Caller, OpenRequest, SeedRequest, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What the task is, in one stable phrase; the same intent finds the same session again.
    intent: String,
    /// Entities to teach.
    seeds: Vec<SeedArgument>,
    /// Writes to teach even if the intent does not speak of them.
    #[serde(default)]
    ranked_capabilities: Vec<String>,
    /// Send the whole table again.
    #[serde(default)]
    replay: bool,
    /// Move the session to the newest catalogs, with new symbols.
    #[serde(default)]
    refresh: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SeedArgument {
    /// Catalog id.
    #[serde(alias = "entry_id")]
    api: String,
    entity: String,
    /// Of its writes, by name; `*` for all. Otherwise those the intent speaks of.
    #[serde(default)]
    capabilities: Vec<String>,
}

pub fn tool() -> Tool {
    describe(
        Name::PlasmContext,
        "Open a session",
        "Open a working session over APIs, or add entities to it; call this first. Answers a logical_session_ref (s0) and a \
         table of the expressions you may write. Merge all seeds of a task into one call.",
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
    match service.open(caller, &OpenRequest { intent, seeds, ranked, replay, refresh }).await {
        Ok(opened) => Answer::text(opened.slot, text::opened(&opened), Some(meta::opened(caller, &opened))),
        Err(error) => Answer::failed(&error),
    }
}

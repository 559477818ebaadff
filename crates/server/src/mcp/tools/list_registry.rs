//! `list_registry`: the APIs there are.
//! Invariant: text only.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::Service;

use super::{Answer, Name, arguments, describe, schema};
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words of an id, a title or an entity.
    #[serde(default)]
    query: Option<String>,
}

pub fn tool() -> Tool {
    describe(
        Name::ListRegistry,
        "List the APIs",
        "List the APIs with their entities and whether their credentials are set.",
        schema::of::<Arguments>(),
        true,
    )
}

pub async fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::ListRegistry, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let listed = service.list_registry(caller, given.query.as_deref()).await;
    Answer::without_session(text::listed(&listed, given.query.as_deref()), None)
}

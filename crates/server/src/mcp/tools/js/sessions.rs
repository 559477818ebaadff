//! `list_sessions`, `list_session_snapshots`, `fork_session`, `promote_session`, `rewind_session`.
//! Invariant: without a name or a ref the log is the error body of the wire contract, never another session's log.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Error, ForkRequest, Service};

use super::super::{Answer, Name, arguments, describe, schema};
use super::{done, refused};
use crate::js;
use crate::mcp::named::Named;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Snapshots {
    /// Comma-separated.
    #[serde(default)]
    fields: Option<String>,
    #[serde(default)]
    logical_session_ref: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkArguments {
    logical_session_ref: String,
    intent: String,
    /// Log index.
    #[serde(default)]
    at: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Promote {
    logical_session_ref: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rewind {
    logical_session_ref: String,
    index: u64,
}

pub fn tool(name: Name) -> Option<Tool> {
    Some(match name {
        Name::ListSessions => describe(name, "List sessions", "Sessions with a log.", schema::of::<Nothing>(), true),
        Name::ListSessionSnapshots => {
            describe(name, "Session log", "Log of runs and heaps.", schema::of::<Snapshots>(), true)
        }
        Name::ForkSession => describe(
            name,
            "Fork a session",
            "Copy a session; its writes stop at the plan until promote_session.",
            schema::of::<ForkArguments>(),
            false,
        ),
        Name::PromoteSession => describe(name, "Promote a fork", "Let a fork write.", schema::of::<Promote>(), false),
        Name::RewindSession => {
            describe(name, "Rewind a session", "Go back to a heap of its log.", schema::of::<Rewind>(), false)
        }
        _ => return None,
    })
}

pub async fn sessions(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let Nothing {} = match arguments(Name::ListSessions, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.js_sessions(caller).await {
        Ok(names) => Answer::structured(json!({"sessions": names}), None),
        Err(error) => Answer::failed(&error),
    }
}

pub async fn snapshots(service: &Service, caller: &Caller, named: Named, given: JsonObject) -> Answer {
    let given: Snapshots = match arguments(Name::ListSessionSnapshots, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match log(service, caller, named, given).await {
        Ok(value) => Answer::structured(value, None),
        Err(error) => refused(&error, json!({"entries": [{"error": error.to_string()}]})),
    }
}

async fn log(service: &Service, caller: &Caller, named: Named, given: Snapshots) -> Result<Value, Error> {
    let fields = js::fields(given.fields.as_deref())?;
    let entries = service.session_log(caller, &named.session(given.logical_session_ref)).await?;
    Ok(json!({"entries": entries.iter().map(|entry| js::entry(entry, &fields)).collect::<Vec<_>>()}))
}

pub async fn fork(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: ForkArguments = match arguments(Name::ForkSession, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let asked = ForkRequest { session: given.logical_session_ref, intent: given.intent, at: given.at };
    match service.fork_session(caller, &asked).await {
        Ok(forked) => Answer::structured(js::forked(&forked), None),
        Err(error) => Answer::failed(&error),
    }
}

pub async fn promote(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Promote = match arguments(Name::PromoteSession, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    done(service.promote_session(caller, &given.logical_session_ref).await)
}

pub async fn rewind(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Rewind = match arguments(Name::RewindSession, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.rewind_session(caller, &given.logical_session_ref, given.index).await {
        Ok(entry) => Answer::structured(json!({"entry": js::entry(&entry, &[])}), None),
        Err(error) => Answer::failed(&error),
    }
}

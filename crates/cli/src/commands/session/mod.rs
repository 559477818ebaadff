//! `tokamak context`, `plan`, `run`, `session`, `artifact` and `gc`: commands that make the calls of an MCP host on the data folder.
//! Invariant: each command makes a request of `app::calls`, and prints the text that a model would read, or the whole answer as JSON.

mod lineage;
mod run;
mod show;
mod stored;

use std::path::Path;

use access::Caller;
use app::calls::{PlasmContext, SeedArgument};
use app::{App, Call, Context, Rendered};
use serde_json::json;
use session::TaughtTable;

use super::with_app;
use crate::args::{ContextArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;

pub use run::{plan, run};
pub use show::session;
pub use stored::{artifact, collect, gc};

/// `tokamak context`: opens the session of an intent, or teaches more entities to it.
pub async fn context(config_file: Option<&Path>, args: &ContextArgs, output: &Output) -> Result<(), Failure> {
    let request = PlasmContext {
        intent: args.intent.clone(),
        seeds: args.seeds.iter().map(|text| parse_seed(text)).collect::<Result<_, _>>()?,
        ranked_capabilities: args.ranked.clone(),
        replay: args.replay,
        refresh: args.refresh,
    };
    with_app(config_file, Settings::from(&args.service), async |app| {
        let Rendered { value: opened, text } = call_with_text(&app, "context", request, server::text::opened).await?;
        if !output.json {
            output.line(&text);
            return Ok(());
        }
        let table = match &opened.taught {
            TaughtTable::Text(table) => Some(table),
            TaughtTable::Unchanged { .. } => None,
        };
        output.value(&json!({
            "logical_session_ref": opened.slot.to_string(),
            "logical_session_id": opened.session,
            "prompt_hash": opened.execute.prompt_hash,
            "session": opened.execute.session_id,
            "domain_revision": opened.revision,
            "reused": opened.reused,
            "new_symbol_space": opened.continuity.new_symbol_space,
            "stale_binding_recovered": opened.continuity.previous_execute.is_some(),
            "table": table,
        }));
        Ok(())
    })
    .await
}

/// Parses `api:Entity`, which may be followed by the names of writes: `api:Entity:write:other`.
fn parse_seed(text: &str) -> Result<SeedArgument, Failure> {
    let mut parts = text.split(':').map(str::to_owned);
    match (parts.next(), parts.next()) {
        (Some(api), Some(entity)) if !api.is_empty() && !entity.is_empty() => {
            Ok(SeedArgument { api, entity, capabilities: parts.collect() })
        }
        _ => Err(Failure::Usage(format!(
            "--seed {text} is not a seed; write the seed as api:Entity, such as demo:Ticket"
        ))),
    }
}

/// Makes a call and renders the answer as a model would read it. The trace of the session stores this text.
///
/// `command` is the name of the call in the trace.
async fn call_with_text<C: Call>(
    app: &App,
    command: &'static str,
    call: C,
    text: impl FnOnce(&C::Answer) -> String,
) -> Result<Rendered<C::Answer>, Failure> {
    let context = Context::command(command);
    let rendered = app.call_with(&context, call, |_, result| {
        let text = result.as_ref().map(text).unwrap_or_default();
        Rendered { text: text.clone(), value: result.map(|value| Rendered { value, text }) }
    });
    Ok(rendered.await?)
}

/// Returns the id of a session. `reference` is its slot, its id or its intent.
async fn session_id(app: &App, reference: &str) -> Result<String, Failure> {
    Ok(app.service().session_id(&Caller::local(), reference).await?.to_string())
}

//! `tokamak context`: open a session, or teach it more.
//! Invariant: a seed is `api:Entity`, with writes after further colons.

use std::path::Path;

use ::session::{CallRecord, OpenRequest, SeedRequest, TaughtTable};
use access::Caller;
use serde_json::json;

use super::{traced, with_service};
use crate::args::Context;
use crate::failure::Failure;
use crate::output::Output;

pub async fn context(file: Option<&Path>, args: &Context, output: &Output) -> Result<(), Failure> {
    let seeds = args.seeds.iter().map(|text| seed(text)).collect::<Result<Vec<_>, _>>()?;
    let (intent, ranked) = (args.intent.clone(), args.ranked.clone());
    let request = OpenRequest { intent, seeds, ranked, replay: args.replay, refresh: args.refresh };
    with_service((file, &args.work), async |service| {
        let started = service.now();
        let opened = service.open(&Caller::local(), &request).await?;
        let text = server::text::opened(&opened);
        let call = CallRecord::default().with_seeds(&request.seeds);
        traced(&service, &opened.session.to_string(), (call, started, "context"), ("ok", &text));
        if output.json {
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
        } else {
            output.line(&text);
        }
        Ok(())
    })
    .await
}

fn seed(text: &str) -> Result<SeedRequest, Failure> {
    let mut parts = text.split(':').map(str::to_owned);
    match (parts.next(), parts.next()) {
        (Some(api), Some(entity)) if !api.is_empty() && !entity.is_empty() => {
            Ok(SeedRequest { api, entity, capabilities: parts.collect() })
        }
        _ => Err(Failure::Usage(format!("--seed {text}: write it as api:Entity, such as demo:Ticket"))),
    }
}

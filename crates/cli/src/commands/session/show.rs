//! `tokamak session list|show|rm`, and what leads to the others.
//! Invariant: looking changes nothing.

use std::path::Path;

use ::session::{CallRecord, NamedSession, SessionTarget, SessionView};
use access::Caller;
use base::Timestamp;
use serde_json::{Value, json};

use super::super::catalog::count;
use super::{lineage, with_service};
use crate::args::{SessionAction, Sessions};
use crate::failure::Failure;
use crate::output::Output;

pub async fn session(file: Option<&Path>, args: &Sessions, output: &Output) -> Result<(), Failure> {
    let me = Caller::local();
    with_service((file, &args.work), async |service| {
        match &args.action {
            SessionAction::List => {
                let (sessions, named) = (service.list_sessions(&me).await?, service.named_sessions(&me).await?);
                if output.json {
                    output.value(&json!({"sessions": sessions, "named": named}));
                } else if sessions.is_empty() && named.is_empty() {
                    output.line("there are no sessions; `tokamak context INTENT --seed API:ENTITY` opens one");
                } else {
                    sessions.iter().for_each(|view| output.line(&line(view, output)));
                    named.iter().for_each(|session| output.line(&named_line(session, output)));
                }
            }
            SessionAction::Show { session, graph: Some(form) } => {
                lineage::log(&service, session, (Some(*form), None), output).await?;
            }
            SessionAction::Log { session, graph, output: path } => {
                lineage::log(&service, session, (*graph, path.as_deref()), output).await?;
            }
            SessionAction::Fork { session, intent, at } => {
                lineage::fork(&service, (session, intent, *at), output).await?;
            }
            SessionAction::Promote { session } => lineage::promote(&service, session, output).await?,
            SessionAction::Rewind { session, index } => lineage::rewind(&service, session, *index, output).await?,
            SessionAction::Show { session, graph: None } => {
                let view = service.session_view(&me, session).await?;
                let calls = service.trace(&me, session).await?;
                if output.json {
                    let calls: Vec<Value> = calls.iter().map(counted).collect();
                    output.value(&json!({"session": view, "calls": calls}));
                } else {
                    show(&view, &calls, output);
                }
            }
            SessionAction::Rm { session } => {
                let removed = match service.session_target(&me, session).await? {
                    SessionTarget::Named(name) => {
                        service.remove_named_session(&me, &name).await?;
                        name
                    }
                    _ => service.remove_session(&me, session).await?.to_string(),
                };
                if output.json {
                    output.value(&json!({"removed": removed}));
                } else {
                    output.line(&format!("removed {removed}"));
                }
            }
        }
        Ok(())
    })
    .await
}

fn counted(call: &CallRecord) -> Value {
    let mut value = json!(call);
    value["answer_tokens"] = if call.answer.is_empty() { Value::Null } else { json!(count(&call.answer)) };
    value
}

fn line(view: &SessionView, output: &Output) -> String {
    let slot = view.slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    let entities =
        view.space.as_ref().map_or_else(|| "expired".to_owned(), |s| format!("{} entities", s.entities.len()));
    let intent = if view.intent.is_empty() { "(no intent)" } else { &view.intent };
    let numbers = format!("{entities}, {} runs{}", view.runs, in_javascript(view.js_entries));
    format!("{:4} {}  {}  {}  {numbers}", slot, view.logical_session_id, view.used, output.bold(intent))
}

fn in_javascript(entries: u64) -> String {
    if entries == 0 { String::new() } else { format!(", {entries} of JavaScript") }
}

/// One that a connection is named by has neither slot nor intent.
fn named_line(session: &NamedSession, output: &Output) -> String {
    let numbers = format!("named, 0 runs{}", in_javascript(session.js_entries));
    format!("-    {}  {}  {numbers}", output.bold(&session.name), session.used)
}

fn show(view: &SessionView, calls: &[CallRecord], output: &Output) {
    output.line(&line(view, output));
    output.line(&format!("opened    {}", view.created));
    match &view.space {
        Some(space) => {
            output.line(&format!("execute   {} / {}", space.execute.prompt_hash.short(), space.execute.session_id));
            output.line(&format!("table     revision {}, {}", space.revision, space.entities.join(", ")));
            for (id, digest) in &space.catalogs {
                output.line(&format!("catalog   {id} {}", digest.short()));
            }
        }
        None => output.line("execute   expired; the next context call opens a new one"),
    }
    output.line(&format!("calls     {}", calls.len()));
    for call in calls {
        let tokens = match (call.answer.is_empty(), call.answer_chars) {
            (false, _) => format!(", {} tokens", count(&call.answer)),
            (true, 0) => String::new(),
            (true, chars) => format!(", {chars} characters"),
        };
        let head = format!("{} {:13} {}", Timestamp(call.at), call.tool, call.outcome);
        output.line(&format!("\n{} ({} ms{tokens})", output.bold(&head), call.ms));
        if !call.seeds.is_empty() {
            output.line(&format!("    {}", call.seeds.join(", ")));
        }
        for text in call.program.iter().flat_map(|program| program.lines()) {
            output.line(&format!("    {text}"));
        }
        if let Some(plan) = &call.plan {
            let uri = call.uri.as_ref().map(|uri| format!(" · {uri}")).unwrap_or_default();
            output.line(&format!("  plan {}{uri}", plan.short()));
        }
        for step in &call.steps {
            let rows = step.rows.map_or_else(|| "failed".to_owned(), |rows| format!("{rows} rows"));
            output.line(&format!("  {:12} {:>8.1} ms  {rows}", step.name, step.us as f64 / 1000.0));
        }
        call.receipts.iter().for_each(|receipt| output.line(&format!("  {receipt}")));
    }
}

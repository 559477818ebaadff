//! `tokamak session`: lists, shows and removes sessions. The module `lineage` has the commands for logs and heaps.
//! Invariant: `list` and `show` only read data.

use std::path::Path;

use app::calls::{ListLogicalSessions, RemoveSession, SessionListing, ShowTrace, ShownTrace};
use app::{App, Context};
use base::Timestamp;
use serde_json::{Value, json};
use session::{CallRecord, NamedSession, SessionView};

use super::super::catalog::count_tokens;
use super::{lineage, with_app};
use crate::args::{SessionAction, SessionsArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;

pub async fn session(config_file: Option<&Path>, args: &SessionsArgs, output: &Output) -> Result<(), Failure> {
    with_app(config_file, Settings::from(&args.service), async |app| run_action(&app, &args.action, output).await).await
}

async fn run_action(app: &App, action: &SessionAction, output: &Output) -> Result<(), Failure> {
    match action {
        SessionAction::List => {
            let request = ListLogicalSessions { with_named: true, limit: usize::MAX };
            let SessionListing { sessions, named, omitted } =
                app.call(&Context::command("list_logical_sessions"), request).await?;
            if output.json {
                output.value(&json!({"sessions": sessions, "named": named, "omitted": omitted}));
            } else if sessions.is_empty() && named.is_empty() {
                output.line("there are no sessions; `tokamak context INTENT --seed API:ENTITY` opens one");
            } else {
                sessions.iter().for_each(|session| output.line(&session_line(session, output)));
                named.iter().for_each(|session| output.line(&named_session_line(session, output)));
                if omitted > 0 {
                    output.line(&format!("{omitted} sessions that were used before these are not listed"));
                }
            }
        }
        SessionAction::Show { session, graph: None } => {
            let request = ShowTrace { reference: session.clone() };
            let ShownTrace { session, calls } = app.call(&Context::command("show_trace"), request).await?;
            if output.json {
                let calls: Vec<Value> = calls.iter().map(call_value).collect();
                output.value(&json!({"session": session, "calls": calls}));
            } else {
                print_session(&session, &calls, output);
            }
        }
        SessionAction::Show { session, graph: Some(form) } => {
            lineage::log(app, session, Some(*form), None, output).await?;
        }
        SessionAction::Log { session, graph, output: path } => {
            lineage::log(app, session, *graph, path.as_deref(), output).await?;
        }
        SessionAction::Fork { session, intent, at } => lineage::fork(app, session, intent, *at, output).await?,
        SessionAction::Promote { session } => lineage::promote(app, session, output).await?,
        SessionAction::Rewind { session, index } => lineage::rewind(app, session, *index, output).await?,
        SessionAction::Rm { session } => {
            let request = RemoveSession { session: session.clone() };
            let removed = app.call(&Context::command("remove_session"), request).await?;
            output.value_or_line(&json!({"removed": removed}), &format!("removed the session {removed}"));
        }
    }
    Ok(())
}

/// Returns a recorded call as JSON, with the number of tokens of its answer.
fn call_value(call: &CallRecord) -> Value {
    let mut value = json!(call);
    value["answer_tokens"] = if call.answer.is_empty() { Value::Null } else { json!(count_tokens(&call.answer)) };
    value
}

fn session_line(session: &SessionView, output: &Output) -> String {
    let slot = session.slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    let entities =
        session.space.as_ref().map_or_else(|| "expired".to_owned(), |s| format!("{} entities", s.entities.len()));
    let intent = if session.intent.is_empty() { "(no intent)" } else { &session.intent };
    let numbers = format!("{entities}, {} runs{}", session.runs, js_runs_text(session.js_entries));
    format!("{:4} {}  {}  {}  {numbers}", slot, session.logical_session_id, session.used, output.bold(intent))
}

fn js_runs_text(entries: u64) -> String {
    if entries == 0 { String::new() } else { format!(", {entries} of JavaScript") }
}

/// Returns the line of a named session, which has a name from its connection, but no slot and no intent.
fn named_session_line(session: &NamedSession, output: &Output) -> String {
    let numbers = format!("named, 0 runs{}", js_runs_text(session.js_entries));
    format!("-    {}  {}  {numbers}", output.bold(&session.name), session.used)
}

fn print_session(session: &SessionView, calls: &[CallRecord], output: &Output) {
    output.line(&session_line(session, output));
    output.line(&format!("opened    {}", session.created));
    match &session.space {
        Some(space) => {
            output.line(&format!("execute   {} / {}", space.execute.prompt_hash.short(), space.execute.session_id));
            output.line(&format!("table     revision {}, {}", space.revision, space.entities.join(", ")));
            for (id, digest) in &space.catalogs {
                output.line(&format!("catalog   {id} {}", digest.short()));
            }
        }
        None => output.line("execute   expired; the next `tokamak context` with this intent opens a new one"),
    }
    output.line(&format!("calls     {}", calls.len()));
    for call in calls {
        let tokens = match (call.answer.is_empty(), call.answer_chars) {
            (false, _) => format!(", {} tokens", count_tokens(&call.answer)),
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

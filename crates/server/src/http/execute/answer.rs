//! A plan, a result or a run that goes on, in the form that was asked for.
//! Invariant: JSON and lines carry all rows and fields, uncut; text is what a model would read.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use session::{DetachedRun, RunResult};

use super::Address;
use super::accept::Form;
use crate::{plasm, text};

/// A program that was planned and not run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Planned {
    /// Always `planned`.
    state: &'static str,
    /// What a model would read.
    text: String,
    /// What to run it by, where it needs a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_commit_ref: Option<String>,
    /// As `_meta.plasm` of `plasm`.
    #[schemars(with = "BTreeMap<String, Value>")]
    plasm: Value,
}

/// A run that goes on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Running {
    /// Always `running`.
    state: &'static str,
    /// Send `wait(handle)` or `cancel(handle)` as a program.
    handle: String,
    /// Where its events are.
    stream: String,
    /// What a model would read.
    text: String,
    #[schemars(with = "BTreeMap<String, Value>")]
    plasm: Value,
}

/// A run that ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finished {
    /// Always `finished`.
    state: &'static str,
    /// `ok`, `step_failed` or `cancelled`.
    outcome: &'static str,
    returns: Vec<Returned>,
    /// As `_meta.plasm` of `plasm_run`.
    #[schemars(with = "BTreeMap<String, Value>")]
    plasm: Value,
}

/// One result of a program.
#[derive(Debug, Serialize, JsonSchema)]
struct Returned {
    label: String,
    entity: String,
    columns: Vec<String>,
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    rows: Value,
    /// How much of what was asked for they are; not where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn outcome(ran: &RunResult) -> &'static str {
    match (ran.outcome.cancelled, ran.outcome.failed()) {
        (true, _) => "cancelled",
        (false, true) => "step_failed",
        (false, false) => "ok",
    }
}

pub fn planned(form: Form, planned: &session::PlannedProgram, program: &str) -> Response {
    let text = text::planned(planned, program);
    if form == Form::Text {
        return plain(StatusCode::OK, text);
    }
    let (plan_commit_ref, plasm) = (planned.commit.clone(), plasm::planned(planned));
    one(form, StatusCode::OK, &Planned { state: "planned", text, plan_commit_ref, plasm })
}

pub fn running(form: Form, operation: &DetachedRun, address: &Address) -> Response {
    let (text, handle) = (text::running(operation), operation.handle.clone());
    let stream = format!("{}/operations/{handle}/stream", address.path());
    let mut response = match form {
        Form::Text => plain(StatusCode::ACCEPTED, text),
        form => {
            let plasm = plasm::running(operation);
            let body = Running { state: "running", handle, stream: stream.clone(), text, plasm };
            one(form, StatusCode::ACCEPTED, &body)
        }
    };
    if let Ok(stream) = stream.parse() {
        response.headers_mut().insert(header::LOCATION, stream);
    }
    response
}

pub fn finished(form: Form, ran: &RunResult, shown_chars: usize) -> Response {
    match form {
        Form::Text => plain(StatusCode::OK, text::capped(text::ran(ran, shown_chars).text)),
        Form::Json => one(form, StatusCode::OK, &result(ran)),
        Form::Lines => lines(result(ran)),
    }
}

/// All of a result; what a stream ends with, too.
pub fn result(ran: &RunResult) -> Finished {
    let returned = |finished: &exec::ReturnResult| Returned {
        label: finished.label.clone(),
        entity: finished.entity.clone(),
        columns: finished.columns.clone(),
        rows: finished.result.as_ref().map_or_else(|_| json!([]), |set| json!(set.rows)),
        coverage: finished.result.as_ref().ok().map(|set| set.coverage.to_string()),
        error: finished.result.as_ref().err().map(ToString::to_string),
    };
    let returns: Vec<Returned> = ran.outcome.returns.iter().map(returned).collect();
    // Nothing is left out here.
    let plasm = plasm::ran(ran, &vec![Vec::new(); returns.len()]);
    Finished { state: "finished", outcome: outcome(ran), returns, plasm }
}

/// `{"return", "row"}` for each row, then the rest of the result without its rows.
fn lines(mut result: Finished) -> Response {
    let mut out = String::new();
    for returned in &mut result.returns {
        let rows = std::mem::replace(&mut returned.rows, json!([]));
        for row in rows.as_array().into_iter().flatten() {
            out.push_str(&json!({"return": returned.label, "row": row}).to_string());
            out.push('\n');
        }
    }
    out.push_str(&serde_json::to_string(&result).unwrap_or_default());
    out.push('\n');
    ([(header::CONTENT_TYPE, "application/x-ndjson")], out).into_response()
}

fn one(form: Form, status: StatusCode, body: &impl Serialize) -> Response {
    if form != Form::Lines {
        return (status, Json(body)).into_response();
    }
    let line = format!("{}\n", serde_json::to_string(body).unwrap_or_default());
    (status, [(header::CONTENT_TYPE, "application/x-ndjson")], line).into_response()
}

fn plain(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
}

//! Answers of a program at its session's address: a plan, a result, or a run that goes on, in the requested format.
//! Invariant: JSON and lines carry all rows and fields, uncut. Text is the text that a model would read.

use std::collections::BTreeMap;

use app::calls::PlasmRun;
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use session::{DetachedRun, PlannedProgram, RunResult};

use super::Address;
use super::accept::AnswerFormat;
use crate::text;
use crate::view::{PlanMeta, RunMeta, RunningMeta};

/// A program that was planned and not run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Planned<'a> {
    /// Always `planned`.
    state: &'static str,
    /// The text that a model would read.
    text: String,
    /// The plan commit with which the plan can be run, if it needs a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_commit_ref: Option<String>,
    /// The same as `_meta.plasm` of `plasm`.
    plasm: PlanMeta<'a>,
}

/// A run that goes on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Running {
    /// Always `running`.
    state: &'static str,
    /// The handle of the operation. The programs `wait(handle)` and `cancel(handle)` wait for it and cancel it.
    handle: String,
    /// The address of its events.
    stream: String,
    /// The text that a model would read.
    text: String,
    plasm: RunningMeta,
}

/// A run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finished {
    /// Always `finished`.
    state: &'static str,
    /// `ok`, `step_failed` or `cancelled`.
    outcome: &'static str,
    returns: Vec<Returned>,
    /// The same as `_meta.plasm` of `plasm_run`.
    plasm: RunMeta,
}

/// One return of a program.
#[derive(Debug, Serialize, JsonSchema)]
struct Returned {
    label: String,
    entity: String,
    columns: Vec<String>,
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    rows: Value,
    /// How much of the requested data the rows hold. Missing if the return failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Answers with the plan of a program that was not run.
pub fn planned(format: AnswerFormat, planned: &PlannedProgram, program: &str) -> Response {
    let text = text::planned(planned, program);
    if format == AnswerFormat::Text {
        return plain_text(StatusCode::OK, text);
    }
    let body =
        Planned { state: "planned", text, plan_commit_ref: planned.commit.clone(), plasm: PlanMeta::new(planned) };
    json_or_line(format, StatusCode::OK, &body)
}

/// Answers with the handle of a run that goes on, and with the address of its events.
pub fn running(format: AnswerFormat, operation: &DetachedRun, address: &Address) -> Response {
    let text = text::running(operation);
    let stream = format!("{}/operations/{}/stream", address.path(), operation.handle);
    let mut response = if format == AnswerFormat::Text {
        plain_text(StatusCode::ACCEPTED, text)
    } else {
        let body = Running {
            state: "running",
            handle: operation.handle.clone(),
            stream: stream.clone(),
            text,
            plasm: RunningMeta::new(operation),
        };
        json_or_line(format, StatusCode::ACCEPTED, &body)
    };
    if let Ok(location) = stream.parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Answers with the result of a run that has ended. `shown_chars` bounds only the text.
pub fn finished(format: AnswerFormat, run: &RunResult, shown_chars: usize) -> Response {
    match format {
        AnswerFormat::Text => plain_text(StatusCode::OK, text::capped(text::run(run, shown_chars).text)),
        AnswerFormat::Json => json_or_line(format, StatusCode::OK, &finished_json(run)),
        AnswerFormat::Lines => lines(finished_json(run)),
    }
}

/// Returns a whole result. The last event of a stream has it too.
pub fn finished_json(run: &RunResult) -> Finished {
    let mut returns = Vec::new();
    for returned in &run.outcome.returns {
        let rowset = returned.result.as_ref().ok();
        returns.push(Returned {
            label: returned.label.clone(),
            entity: returned.entity.clone(),
            columns: returned.columns.clone(),
            rows: rowset.map_or_else(|| json!([]), |rowset| json!(rowset.rows)),
            coverage: rowset.map(|rowset| rowset.coverage.to_string()),
            error: returned.result.as_ref().err().map(ToString::to_string),
        });
    }
    // No column is left to the artifact, because no cell is cut.
    let plasm = RunMeta::new(run, &vec![Vec::new(); returns.len()]);
    Finished { state: "finished", outcome: PlasmRun::outcome(run), returns, plasm }
}

/// Renders a line `{"return", "row"}` for each row, then a line with the rest of the result.
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

/// Answers with JSON, or with the same JSON as a single line.
fn json_or_line(format: AnswerFormat, status: StatusCode, body: &impl Serialize) -> Response {
    if format != AnswerFormat::Lines {
        return (status, Json(body)).into_response();
    }
    let line = format!("{}\n", serde_json::to_string(body).unwrap_or_default());
    (status, [(header::CONTENT_TYPE, "application/x-ndjson")], line).into_response()
}

fn plain_text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
}

//! Renders the report of a catalog test as text and as JSON.
//! Invariant: the report has every chosen capability once. Each error has a stable code, which other programs can compare.

use std::time::Duration;

use catalog::{Args, Capability, DecodeError, TypeError};
use exec::{ApiProblem, StepError};
use ports::upstream::Error;
use serde_json::{Value, json};

use super::caller::CallOutcome;
use super::samples::MissingValues;

/// The result of the test of one capability.
pub struct ReportEntry {
    pub capability: String,
    pub kind: &'static str,
    pub entity: String,
    pub result: EntryResult,
}

pub enum EntryResult {
    Called { outcome: Box<CallOutcome>, args: Args },
    Skipped(SkipReason),
}

pub enum SkipReason {
    Write,
    Missing(MissingValues),
    /// The budget `--calls`, which is this number, is spent.
    Budget(u32),
}

impl ReportEntry {
    pub fn new(capability: &Capability, result: EntryResult) -> Self {
        Self {
            capability: capability.name.clone(),
            kind: capability.kind.word(),
            entity: capability.entity.clone(),
            result,
        }
    }

    /// Returns `ok`, `failed` or `skipped`.
    pub fn outcome(&self) -> &'static str {
        match &self.result {
            EntryResult::Skipped(_) => "skipped",
            EntryResult::Called { outcome, .. } if outcome.error.is_some() => "failed",
            EntryResult::Called { .. } => "ok",
        }
    }

    /// Renders a line such as `ok       ticket_list  300 rows · 3 calls · 41 ms`, and each remark on a line of its own.
    pub fn text(&self, widest: usize) -> String {
        let head = format!("{:8} {:widest$}", self.outcome(), self.capability);
        let (facts, remarks) = match &self.result {
            EntryResult::Skipped(reason) => return format!("{head}  {}", reason.text()),
            EntryResult::Called { outcome, .. } => (facts(outcome), remarks(outcome)),
        };
        let lines = remarks.into_iter().map(|remark| format!("\n{:10}{remark}", ""));
        format!("{head}  {facts}{}", lines.collect::<String>())
    }

    pub fn value(&self) -> Value {
        let mut value = json!({
            "capability": self.capability,
            "kind": self.kind,
            "entity": self.entity,
            "outcome": self.outcome(),
        });
        match &self.result {
            EntryResult::Skipped(reason) => value["skipped"] = reason.value(),
            EntryResult::Called { outcome, args } => {
                value["with"] = json!(args);
                value["rows"] = json!(outcome.rows.len());
                value["calls"] = json!(outcome.calls);
                value["ms"] = json!(milliseconds(outcome.elapsed));
                value["fields"] = outcome.fields.value();
                value["pages_lost"] = json!(outcome.lost_page);
                if let Some(error) = &outcome.error {
                    value["error"] = json!({"code": code(error), "message": error.to_string()});
                    value["fields"]["misfit"] = mistyped_field(error);
                }
            }
        }
        value
    }
}

impl SkipReason {
    fn text(&self) -> String {
        match self {
            SkipReason::Write => "this is a write, and writes are never called".to_owned(),
            SkipReason::Budget(calls) => format!("the budget of {calls} calls is spent; raise it with --calls"),
            SkipReason::Missing(MissingValues { params, entities }) => {
                let flags: Vec<String> = params.iter().map(|name| format!("--param {name}=…")).collect();
                let rows = match entities.as_slice() {
                    [] => String::new(),
                    names => format!(" (a list that returns rows of {} would supply it too)", names.join(" or ")),
                };
                format!("no value is known for {}; pass {}{rows}", params.join(", "), flags.join(" "))
            }
        }
    }

    fn value(&self) -> Value {
        let (why, params): (&str, &[String]) = match self {
            SkipReason::Write => ("write", &[]),
            SkipReason::Budget(_) => ("budget", &[]),
            SkipReason::Missing(missing) => ("no_value", &missing.params),
        };
        json!({"why": why, "params": params, "message": self.text()})
    }
}

/// Renders the last line, such as `7 capabilities: 6 ok, 0 failed, 1 skipped · 12 calls`.
pub fn summary(entries: &[ReportEntry]) -> String {
    let count = |outcome: &str| entries.iter().filter(|entry| entry.outcome() == outcome).count();
    format!(
        "{} capabilities: {} ok, {} failed, {} skipped · {} calls",
        entries.len(),
        count("ok"),
        count("failed"),
        count("skipped"),
        calls(entries)
    )
}

/// Counts the calls of all capabilities.
pub fn calls(entries: &[ReportEntry]) -> u32 {
    let calls_of = |entry: &ReportEntry| match &entry.result {
        EntryResult::Called { outcome, .. } => outcome.calls,
        EntryResult::Skipped(_) => 0,
    };
    entries.iter().map(calls_of).sum()
}

fn facts(outcome: &CallOutcome) -> String {
    let error = outcome.error.as_ref().map(|error| format!("{error} · ")).unwrap_or_default();
    let plural = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
    let rows = plural(outcome.rows.len(), "row");
    let calls = plural(outcome.calls as usize, "call");
    format!("{error}{rows} · {calls} · {} ms", milliseconds(outcome.elapsed))
}

fn remarks(outcome: &CallOutcome) -> Vec<String> {
    let mut remarks = outcome.fields.remarks();
    if outcome.rows.is_empty() && outcome.error.is_none() {
        remarks.push("the API returned no rows, so the fields were not checked".to_owned());
    }
    if outcome.lost_page {
        remarks.push(
            "the list has fewer rows than the total in its answer, or its next page is an earlier page".to_owned(),
        );
    }
    remarks
}

fn milliseconds(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the field whose value has a wrong type, or null if the error is another one.
fn mistyped_field(error: &StepError) -> Value {
    let StepError::Decode { source, .. } = error else { return Value::Null };
    let DecodeError::Field { entity, field, cause, .. } = source.as_ref() else { return Value::Null };
    let (expected, found) = match cause {
        TypeError::Mismatch { expected, found } => (expected.clone(), found.clone()),
        other => (String::new(), other.to_string()),
    };
    json!({"entity": entity, "field": field, "expected": expected, "found": found})
}

/// Returns the stable code of an error.
fn code(error: &StepError) -> &'static str {
    match error {
        StepError::Bind(_) => "bind",
        StepError::Status { problem, .. } => match problem {
            ApiProblem::Auth => "auth",
            ApiProblem::NotFound => "not_found",
            ApiProblem::Validation => "validation",
            ApiProblem::Conflict => "conflict",
            ApiProblem::Rate => "rate",
            ApiProblem::Server => "server",
            ApiProblem::Unexpected => "unexpected",
        },
        StepError::Decode { source, .. } => decode_code(source),
        StepError::Upstream(error) => upstream_code(error),
        _ => "internal",
    }
}

fn decode_code(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::NotJson(_) => "not_json",
        DecodeError::TooDeep(_) => "too_deep",
        DecodeError::NoRows(_) => "no_rows",
        DecodeError::Field { .. } => "field_type",
        DecodeError::NoKey { .. } => "no_key",
        DecodeError::Paging(_) => "paging",
        DecodeError::Refused(_) => "refused",
        DecodeError::NoEntity(_) => "internal",
    }
}

fn upstream_code(error: &Error) -> &'static str {
    match error {
        Error::Timeout { .. } => "timeout",
        Error::TooLarge { .. } => "too_large",
        Error::Connect { .. } => "connect",
        Error::Withheld { .. } => "withheld",
        Error::Lost { .. } => "lost",
        Error::Redirect { .. } => "redirect",
        Error::ForeignOrigin { .. } => "foreign_origin",
        Error::Invalid { .. } => "invalid",
        Error::PrivateAddress { .. } => "private_address",
        Error::OwnServer { .. } => "own_server",
        Error::Token { .. } => "token",
        Error::Secret { .. } => "secret",
    }
}

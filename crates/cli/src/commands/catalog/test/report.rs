//! What came of each capability, for people and for programs.
//! Invariant: every capability that was chosen is in it once; an error has a word that programs branch on.

use std::time::Duration;

use catalog::{Args, Capability, DecodeError, TypeError};
use exec::{ApiProblem, StepError};
use ports::upstream::Error;
use serde_json::{Value, json};

use super::drive::Driven;
use super::known::Lacking;

pub struct Entry {
    pub capability: String,
    pub kind: &'static str,
    pub entity: String,
    pub result: Ended,
}

pub enum Ended {
    Called { driven: Box<Driven>, args: Args },
    Skipped(Skip),
}

pub enum Skip {
    Write,
    Lacking(Lacking),
    Budget(u32),
}

impl Entry {
    pub fn new(capability: &Capability, result: Ended) -> Self {
        let (name, entity) = (capability.name.clone(), capability.entity.clone());
        Self { capability: name, kind: capability.kind.word(), entity, result }
    }

    pub fn word(&self) -> &'static str {
        match &self.result {
            Ended::Skipped(_) => "skipped",
            Ended::Called { driven, .. } if driven.error.is_some() => "failed",
            Ended::Called { .. } => "ok",
        }
    }

    /// `ok       ticket_list  300 rows · 3 calls · 41 ms`, and what is remarkable on lines of their own.
    pub fn text(&self, widest: usize) -> String {
        let head = format!("{:8} {:widest$}", self.word(), self.capability);
        let (facts, remarks) = match &self.result {
            Ended::Skipped(skip) => return format!("{head}  {}", skip.text()),
            Ended::Called { driven, .. } => (facts(driven), remarks(driven)),
        };
        let lines = remarks.into_iter().map(|remark| format!("\n{:10}{remark}", ""));
        format!("{head}  {facts}{}", lines.collect::<String>())
    }

    pub fn value(&self) -> Value {
        let mut out = json!({
            "capability": self.capability,
            "kind": self.kind,
            "entity": self.entity,
            "outcome": self.word(),
        });
        match &self.result {
            Ended::Skipped(skip) => out["skipped"] = skip.value(),
            Ended::Called { driven, args } => {
                out["with"] = json!(args);
                out["rows"] = json!(driven.rows.len());
                out["calls"] = json!(driven.calls);
                out["ms"] = json!(ms(driven.elapsed));
                out["fields"] = driven.fields.value();
                out["pages_lost"] = json!(driven.lost);
                if let Some(error) = &driven.error {
                    out["error"] = json!({"code": code(error), "message": error.to_string()});
                    out["fields"]["misfit"] = misfit(error);
                }
            }
        }
        out
    }
}

impl Skip {
    fn text(&self) -> String {
        match self {
            Skip::Write => "a write, and writes are never called".to_owned(),
            Skip::Budget(calls) => format!("the budget of {calls} calls is spent; raise it with --calls"),
            Skip::Lacking(Lacking { params, entities }) => {
                let flags: Vec<String> = params.iter().map(|name| format!("--param {name}=…")).collect();
                let rows = match entities.as_slice() {
                    [] => String::new(),
                    names => format!(" (or let a list give rows of {})", names.join(" or ")),
                };
                format!("nothing gives it a value for {}; pass {}{rows}", params.join(", "), flags.join(" "))
            }
        }
    }

    fn value(&self) -> Value {
        let (why, params): (&str, &[String]) = match self {
            Skip::Write => ("write", &[]),
            Skip::Budget(_) => ("budget", &[]),
            Skip::Lacking(lacking) => ("no_value", &lacking.params),
        };
        json!({"why": why, "params": params, "message": self.text()})
    }
}

/// `7 capabilities: 6 ok, 0 failed, 1 skipped · 12 calls`
pub fn summary(entries: &[Entry]) -> String {
    let count = |word: &str| entries.iter().filter(|e| e.word() == word).count();
    format!(
        "{} capabilities: {} ok, {} failed, {} skipped · {} calls",
        entries.len(),
        count("ok"),
        count("failed"),
        count("skipped"),
        calls(entries)
    )
}

pub fn calls(entries: &[Entry]) -> u32 {
    let of = |entry: &Entry| match &entry.result {
        Ended::Called { driven, .. } => driven.calls,
        Ended::Skipped(_) => 0,
    };
    entries.iter().map(of).sum()
}

fn facts(driven: &Driven) -> String {
    let error = driven.error.as_ref().map(|error| format!("{error} · ")).unwrap_or_default();
    let plural = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
    let (rows, calls) = (plural(driven.rows.len(), "row"), plural(driven.calls as usize, "call"));
    format!("{error}{rows} · {calls} · {} ms", ms(driven.elapsed))
}

fn remarks(driven: &Driven) -> Vec<String> {
    let mut remarks = driven.fields.remarks();
    if driven.rows.is_empty() && driven.error.is_none() {
        remarks.push("no rows: its fields were not seen".to_owned());
    }
    if driven.lost {
        remarks.push("the list ended before its own total, or led back to a page it came from".to_owned());
    }
    remarks
}

fn ms(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// The field whose value was not of its type, where that is what failed.
fn misfit(error: &StepError) -> Value {
    let StepError::Decode { source, .. } = error else { return Value::Null };
    let DecodeError::Field { entity, field, cause, .. } = source.as_ref() else { return Value::Null };
    let (expected, found) = match cause {
        TypeError::Mismatch { expected, found } => (expected.clone(), found.clone()),
        other => (String::new(), other.to_string()),
    };
    json!({"entity": entity, "field": field, "expected": expected, "found": found})
}

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
        Error::Lost { .. } => "lost",
        Error::Redirect { .. } => "redirect",
        Error::ForeignOrigin { .. } => "foreign_origin",
        Error::Invalid { .. } => "invalid",
        Error::PrivateAddress { .. } => "private_address",
        Error::Token { .. } => "token",
        Error::Secret { .. } => "secret",
    }
}

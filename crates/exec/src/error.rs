//! The errors of steps, as variants that callers can match. Errors of an API contain the API's own message.
//! Invariant: an error contains no credential and no query value. The API's message is cut to one line.

use std::sync::Arc;

use base::Response;
use catalog::{BindError, DecodeError};
use serde_json::Value;

/// The reason why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The message of a failure that was loaded from a stored result.
    #[error("{0}")]
    Recorded(String),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("{label}: {problem} ({status}){}", with_message(.message))]
    Status { label: String, status: u16, problem: ApiProblem, message: Option<String> },
    #[error("{label}: {source}")]
    Decode {
        label: String,
        #[source]
        source: Box<DecodeError>,
    },
    #[error(transparent)]
    Upstream(#[from] ports::upstream::Error),
    /// The thread that decoded the answer ended without a result, because of a bug or a shutdown of the server.
    #[error("{0}: reading the answer was interrupted")]
    Interrupted(String),
    /// The plan names a capability or entity that the pinned catalog lacks, because the plan was made with another version of
    /// the catalog.
    #[error("catalog `{0}` does not have what the plan needs")]
    Catalog(base::CatalogId),
    /// The step did not run because an input failed. `cause` is the failure of the first failed step in the chain of inputs.
    #[error("not run, because {step} failed: {cause}")]
    Input { step: String, cause: Arc<StepError> },
    /// The effect did not start because an earlier effect did not succeed.
    #[error("not run, because {step} before it did not succeed: {cause}")]
    After { step: String, cause: Arc<StepError> },
    /// A value that the step needs is absent or `null`.
    #[error("`{what}` has no value{}", in_context(.of))]
    Missing { what: String, of: Option<String> },
    /// A step that needs exactly one row received no row or several rows.
    // The message omits the number of rows, because a read may have stopped at the second row.
    #[error("{what} has {} where there must be one", if *.found == 0 { "no row" } else { "more than one row" })]
    NotOne { what: String, found: usize },
    #[error("the template{}: {problem}", at_line(.line))]
    Template { line: Option<usize>, problem: TemplateProblem },
    /// The run reached a bound of its plan.
    #[error("stopped at the plan's bound of {bound} {what}")]
    Bound { what: &'static str, bound: usize },
    #[error("cancelled before it ran")]
    Cancelled,
    /// Another process owns the run now and continues it, so this process sent nothing.
    #[error("{label}: not sent, because another process took the run over")]
    TakenOver { label: String },
    /// One of several effects of a step failed or has an unknown outcome. `done` effects of the step succeeded.
    #[error("{}{cause}{}", row_number(.row, .of), done_before(.done))]
    Effect { row: usize, of: usize, done: usize, cause: Box<StepError> },
    /// The answer was lost. The effect may or may not have happened.
    #[error("{label}: nobody knows whether it happened: {why}")]
    Unknown { label: String, why: String },
    /// The effect did not happen. The field `resolved` of its receipt shows how this was determined.
    #[error("{label}: it did not happen: {why}")]
    Failed { label: String, why: String },
    #[error("{label}: {problem}: {message}")]
    Refused { label: String, problem: ApiProblem, message: String },
    #[error(transparent)]
    Receipts(#[from] ports::receipts::Error),
    /// The plan has an effect, but the context of the run has no store for receipts.
    #[error("this run keeps no receipts, so it has no effects")]
    NoReceipts,
    #[error("there is no page `{0}` in this session")]
    NoPage(String),
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The input of a step is not a row set of an entity, although the step needs one.
    #[error("the plan follows something that is not rows of an entity")]
    NotRows,
    #[error("`{0}` was never run")]
    NeverRun(String),
}

/// The reason why `wait(…)` or `cancel(…)` failed.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    #[error("there is no operation `{0}` in this session")]
    NotThere(String),
    #[error("operation `{handle}` failed: {why}")]
    Failed { handle: String, why: String },
}

/// A mistake in a template or in the values that the template uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateProblem {
    #[error("{0}")]
    Syntax(String),
    /// The template uses a name that the row does not have.
    #[error("{0}")]
    Undefined(String),
    #[error("{0}")]
    Failed(String),
    #[error("it took too many steps (limit {0})")]
    Fuel(u64),
    #[error("it looks at more than {0} bytes, again and again; project or filter the rows before it")]
    Work(u64),
    #[error("its text is longer than {0} bytes")]
    Output(usize),
    #[error("its source is longer than {0} bytes")]
    Source(usize),
}

/// A class of API errors, derived from the HTTP status or the API's error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiProblem {
    #[error("the API wants other credentials")]
    Auth,
    #[error("not found")]
    NotFound,
    #[error("the API refused the request")]
    Validation,
    #[error("conflict")]
    Conflict,
    #[error("too many requests")]
    Rate,
    #[error("the API failed")]
    Server,
    #[error("an answer nobody expected")]
    Unexpected,
}

impl ApiProblem {
    /// Returns the class of an HTTP status.
    pub fn of(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            404 | 410 => Self::NotFound,
            409 | 412 => Self::Conflict,
            400 | 405..=408 | 411 | 413..=428 => Self::Validation,
            429 => Self::Rate,
            500.. => Self::Server,
            _ => Self::Unexpected,
        }
    }

    /// Returns the class of an API's own error code, such as GraphQL's `extensions.code`. No standard defines these codes, so
    /// common words in them are matched.
    pub fn of_code(code: &str) -> Self {
        let word: String = code.to_ascii_lowercase().replace(['-', ' '], "_");
        let has = |words: &[&str]| words.iter().any(|w| word.contains(w));
        match word.as_str() {
            _ if has(&["unauth", "forbidden", "denied", "not_allowed", "invalid_auth", "token", "permission"]) => {
                Self::Auth
            }
            _ if has(&["not_found", "no_such", "missing", "does_not_exist"]) => Self::NotFound,
            _ if has(&["rate", "throttl", "too_many", "too_complex"]) => Self::Rate,
            _ if has(&["conflict", "already", "out_of_stock", "mismatch", "precondition"]) => Self::Conflict,
            _ if has(&["internal", "unavailable", "timeout", "server", "fatal"]) => Self::Server,
            _ if has(&["valid", "bad_user_input", "parse", "bad_request", "argument", "resolution"]) => {
                Self::Validation
            }
            _ => Self::Unexpected,
        }
    }
}

impl StepError {
    /// Returns whether the API answered that the requested row does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Status { problem: ApiProblem::NotFound, .. } | Self::Refused { problem: ApiProblem::NotFound, .. }
        )
    }

    /// Returns whether the step did not run because the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::Effect { cause, .. } => cause.is_cancelled(),
            _ => false,
        }
    }

    pub(crate) fn from_decode(label: String, source: DecodeError) -> Self {
        match source {
            DecodeError::Refused(refusal) => {
                let problem = refusal.code.as_deref().map_or(ApiProblem::Unexpected, ApiProblem::of_code);
                Self::Refused { label, problem, message: refusal.message }
            }
            source => Self::Decode { label, source: Box::new(source) },
        }
    }

    /// Returns the error of an answer whose status is not a success.
    pub fn from_status(label: String, response: &Response) -> Self {
        let status = response.status;
        Self::Status { label, status, problem: ApiProblem::of(status), message: api_message(&response.body) }
    }
}

fn in_context(of: &Option<String>) -> String {
    of.as_ref().map(|of| format!(" in {of}")).unwrap_or_default()
}

fn at_line(line: &Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn row_number(row: &usize, of: &usize) -> String {
    if *of > 1 { format!("row {} of {of}: ", row + 1) } else { String::new() }
}

fn done_before(done: &usize) -> String {
    if *done > 0 { format!("; {done} done before it") } else { String::new() }
}

fn with_message(message: &Option<String>) -> String {
    message.as_ref().map(|m| format!(": {m}")).unwrap_or_default()
}

/// Returns the API's error message from one of the usual places in a JSON body, as one line of at most 300 characters.
fn api_message(body: &[u8]) -> Option<String> {
    // The body comes from a foreign server. A very large or deeply nested body is not parsed, because its message is not worth
    // the cost.
    if body.len() > 64 * 1024 || base::depth_exceeds(body, 64) {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let paths = ["/error/message", "/message", "/error", "/detail", "/title", "/errors/0/message"];
    let text = paths.iter().find_map(|path| body.pointer(path)?.as_str())?;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(status: u16, body: &str) -> String {
        let response = Response { status, headers: vec![], body: body.into() };
        StepError::from_status("GET http://a/b".into(), &response).to_string()
    }

    #[test]
    fn the_message_of_the_api_is_shown_on_one_line() {
        assert_eq!(
            message_of(404, r#"{"error": {"message": "no\n such  ticket"}}"#),
            "GET http://a/b: not found (404): no such ticket"
        );
        assert_eq!(message_of(500, "<html>"), "GET http://a/b: the API failed (500)");
        assert_eq!(message_of(302, "{}"), "GET http://a/b: an answer nobody expected (302)");
    }
}

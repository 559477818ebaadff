//! Why a step failed, as a kind that callers branch on, with the API's own words.
//! Invariant: no credential and no query value is in an error; the API's text is clipped to one line.

use std::sync::Arc;

use base::Response;
use catalog::{BindError, DecodeError};
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("{label}: {problem} ({status}){}", said(.message))]
    Status { label: String, status: u16, problem: ApiProblem, message: Option<String> },
    #[error("{label}: {source}")]
    Decode {
        label: String,
        #[source]
        source: Box<DecodeError>,
    },
    #[error(transparent)]
    Upstream(#[from] ports::upstream::Error),
    /// The thread that read the answer ended without a word: a defect of ours, or the server is going down.
    #[error("{0}: reading the answer was interrupted")]
    Interrupted(String),
    /// The plan names something its catalog does not have: the pinned catalog is not the one it was planned on.
    #[error("catalog `{0}` does not have what the plan needs")]
    Catalog(base::CatalogId),
    /// The cause is the first failure, however many steps lie between.
    #[error("not run, because {step} failed: {cause}")]
    Input { step: String, cause: Arc<StepError> },
    /// A kind of step that this build does not run.
    #[error("`{0}` is not run by this version")]
    NotRun(&'static str),
    /// A step that needs rows of an entity was planned on something else.
    #[error("the plan follows something that is not rows of an entity")]
    NotRows,
    #[error("`{0}` was never run")]
    NeverRun(String),
}

/// What a status means to a caller.
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
}

impl StepError {
    pub fn from_status(label: String, response: &Response) -> Self {
        let (status, message) = (response.status, api_message(&response.body));
        Self::Status { label, status, problem: ApiProblem::of(status), message }
    }
}

fn said(message: &Option<String>) -> String {
    message.as_ref().map(|m| format!(": {m}")).unwrap_or_default()
}

/// Where APIs put their words: `error.message`, `message`, `error`, `detail`, `title`.
fn api_message(body: &[u8]) -> Option<String> {
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

    fn shown(status: u16, body: &str) -> String {
        let response = Response { status, headers: vec![], body: body.into() };
        StepError::from_status("GET http://a/b".into(), &response).to_string()
    }

    #[test]
    fn the_apis_own_words_are_kept_on_one_line() {
        assert_eq!(
            shown(404, r#"{"error": {"message": "no\n such  ticket"}}"#),
            "GET http://a/b: not found (404): no such ticket"
        );
        assert_eq!(shown(500, "<html>"), "GET http://a/b: the API failed (500)");
        assert_eq!(shown(302, "{}"), "GET http://a/b: an answer nobody expected (302)");
    }
}

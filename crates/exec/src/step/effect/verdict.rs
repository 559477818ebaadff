//! The verdict on a sent effect: done, failed or unknown, derived from the answer or from the error of the call.
//!
//! | answer | verdict | reason |
//! |---|---|---|
//! | 2xx | done | the API says so, even if the rest of its answer cannot be read |
//! | 2xx that reports a refusal (GraphQL `errors` without data, `ok: false`) | failed | the API says so |
//! | GraphQL `errors` beside data, or an internal error | unknown | the mutation may have run before something in it failed |
//! | 4xx | failed | the API refused it |
//! | 501, 505, 511 | failed | the server never started it |
//! | other 5xx | unknown | a handler may fail after its work, and a gateway may lose a good answer |
//! | 3xx, and a redirect that is not followed | unknown | some APIs answer 302 or 303 after success |
//! | could not connect; refused or withheld before it left; no credential | failed | nothing left |
//! | no answer in time; connection lost; answer too large | unknown | the request left |
//!
//! Invariant: the verdict is `failed` only if nothing happened, and `done` only if the API or a probe said so.

use base::Response;
use ports::receipts::State;
use ports::upstream::Error;

use crate::error::StepError;

/// The outcome of a sent effect, as far as the status or the error shows it.
pub enum Verdict {
    /// The status shows that the effect happened. The body is not decoded yet.
    Done(Response),
    /// The effect did not happen.
    Failed(State, StepError),
    /// The effect may have happened.
    Unknown(State, StepError),
}

/// Returns the verdict for an answer, or for the error of a call without an answer.
pub fn of_answer(label: &str, answer: Result<Response, Error>) -> Verdict {
    match answer {
        Ok(response) => of_status(label, response),
        Err(error) => {
            let why = reason(&error).to_owned();
            if error.may_have_arrived() {
                return Verdict::Unknown(
                    State::Unknown { status: None, why },
                    unknown_outcome(label, &error.to_string()),
                );
            }
            Verdict::Failed(State::Failed { status: None, why }, StepError::Upstream(error))
        }
    }
}

fn of_status(label: &str, response: Response) -> Verdict {
    let status = Some(response.status);
    match response.status {
        200..=299 => Verdict::Done(response),
        400..=499 | 501 | 505 | 511 => {
            let error = StepError::from_status(label.to_owned(), &response);
            Verdict::Failed(State::Failed { status, why: error.to_string() }, error)
        }
        code => {
            let why = format!("status {code}");
            let error = unknown_outcome(label, &StepError::from_status(label.to_owned(), &response).to_string());
            Verdict::Unknown(State::Unknown { status, why }, error)
        }
    }
}

/// Returns the reason text that the receipt stores.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Timeout { .. } => "no answer in time",
        Error::TooLarge { .. } => "the answer is too large",
        Error::Lost { .. } => "the connection was lost",
        Error::Redirect { .. } => "a redirect",
        Error::Connect { .. } => "could not connect",
        Error::Withheld { .. } => "not sent, because the run was stopped or taken over",
        Error::ForeignOrigin { .. }
        | Error::Invalid { .. }
        | Error::PrivateAddress { .. }
        | Error::OwnServer { .. } => "refused before it left",
        Error::Token { .. } | Error::Secret { .. } => "no credential",
    }
}

/// Returns the error of an effect that may have happened.
pub fn unknown_outcome(label: &str, why: &str) -> StepError {
    // `StepError::Unknown` writes the label itself, so a label at the start of the reason is removed.
    let why = why.strip_prefix(label).map_or(why, |rest| rest.trim_start_matches(": "));
    StepError::Unknown { label: label.to_owned(), why: why.to_owned() }
}

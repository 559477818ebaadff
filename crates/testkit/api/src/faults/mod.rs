//! Faults on request: the ways in which an answer can be broken, and the rules that select the requests.
//! Invariants: a request is broken only if its header or a rule selects a fault. With a fault before the handler, the handler does not run
//! and its effect does not happen. With a fault after the handler, the effect has happened and its answer is broken.

mod break_answer;
mod gzip_bomb;
mod parse;
mod rate;
mod rules;

use std::time::Duration;

use axum::http::StatusCode;

pub use break_answer::{break_answer, limit_rate, no_answer};
pub use parse::FaultError;
pub use rate::RateDecision;
pub use rules::{ActiveFault, FaultRule, FaultRules, RequestLine};

/// The header by which a request selects the fault for its own answer.
pub const FAULT_HEADER: &str = "x-demo-fault";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// The number of requests with one key that get the fault. With `None` all requests get it.
    pub times: Option<u64>,
    /// The key under which `times` and the rate are counted. `None` means the default key.
    pub key: Option<String>,
    pub time: FaultTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    Status(StatusCode),
    /// The answer is delayed by this time.
    Slow(Duration),
    /// The handler runs after this time, even if the client has given up before.
    Late(Duration),
    /// The body is sent byte by byte, with this pause between two bytes.
    Drip(Duration),
    /// The Content-Length is larger than the body by this number of bytes.
    Truncate(u64),
    /// The connection is reset.
    Close,
    /// Every number in the JSON is replaced by a text.
    WrongType,
    NotJson,
    /// The body is this number of nested arrays.
    Deep(u64),
    /// The body has this number of bytes.
    Huge(u64),
    /// The body is a gzip file that inflates to this number of bytes.
    GzipBomb(u64),
    /// The answer is a redirect with this status to this URL.
    Redirect(StatusCode, String),
    /// The answer is a 429 with this number of seconds as Retry-After.
    RetryAfter(u64),
    /// Only this number of requests is allowed in a second.
    Rate(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTime {
    BeforeHandler,
    AfterHandler,
}

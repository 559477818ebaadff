//! Faults on request: the ways in which an answer can be broken, and the rules that say which requests get one.
//! Invariants: no request is broken unless its header or a rule asks for it. A fault before the handler keeps the handler from
//! running, so its effect does not happen; a fault after it breaks the answer to an effect that happened.

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

/// The header that asks for a fault on its own request.
pub const FAULT_HEADER: &str = "x-demo-fault";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// How many requests of one key get the fault; without it, all of them.
    pub times: Option<u64>,
    /// The key under which `times` and the rate are counted, unless the default is used.
    pub key: Option<String>,
    pub time: FaultTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    Status(StatusCode),
    /// A pause before the answer.
    Slow(Duration),
    /// The body byte by byte, with this pause between two.
    Drip(Duration),
    /// The Content-Length promises this many bytes more than come.
    Truncate(u64),
    /// The connection is reset.
    Close,
    /// Numbers become texts.
    WrongType,
    NotJson,
    /// As many arrays inside one another.
    Deep(u64),
    /// A body of this many bytes.
    Huge(u64),
    /// A gzip file that inflates to this many bytes.
    GzipBomb(u64),
    /// A redirect with this status to this URL.
    Redirect(StatusCode, String),
    /// A 429 whose Retry-After has this many seconds.
    RetryAfter(u64),
    /// A limit of this many requests in a second.
    Rate(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTime {
    BeforeHandler,
    AfterHandler,
}

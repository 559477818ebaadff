//! Faults on request: what can go wrong with an answer, and the rules that say when it does.
//! Invariants: nothing goes wrong unless a request's header or a rule asked for it; a fault that comes before the handler
//! keeps the handler from running, so its effect does not happen; one that comes after spoils an answer whose effect has.

mod board;
mod bomb;
mod parse;
mod rate;
mod spoil;

use std::time::Duration;

use axum::http::StatusCode;

pub use board::{Active, Board, Incoming, Rule};
pub use parse::FaultError;
pub use rate::Turn;
pub use spoil::{limited, silence, spoil};

/// The header that asks for a fault on the request it comes with.
pub const HEADER: &str = "x-demo-fault";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// How often it applies per key before it heals; without it, always.
    pub times: Option<u64>,
    pub key: Option<String>,
    pub when: When,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Status(StatusCode),
    Slow(Duration),
    Drip(Duration),
    /// The Content-Length promises this many bytes more than come.
    Truncate(u64),
    Close,
    WrongType,
    NotJson,
    Deep(u64),
    Huge(u64),
    GzipBomb(u64),
    Redirect(StatusCode, String),
    RetryAfter(u64),
    Rate(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

//! Outgoing HTTP: the one place where a request as data becomes bytes on a wire, and where credentials enter.
//!
//! Invariants:
//! - A request leaves only for the origin it names, or for the address that origin is routed to. No redirect is followed,
//!   no proxy is taken from the environment, and nothing in a path, a query or a header can choose another host.
//! - A public name leads to public addresses only, checked where the connection is made (`net`).
//! - A secret's value is read here, put into one header marked sensitive or one parameter, and appears in no error, event
//!   or `Debug`.
//! - Every call is bounded: time for the whole request, bytes of the answer, calls at once per origin, number of tries.
//! - What may change something is sent once. Only a failed connect, where nothing left, is tried again for it.
//! - What went wrong is told by types and predicates, never by reading an error's words.

mod address;
mod answer;
mod auth;
mod body;
mod cache;
mod collector;
mod failure;
mod net;
mod options;
mod outgoing;
mod pace;
mod payload;
mod redact;
mod retry;
mod send;
mod wire;

pub use collector::{Collector, NotTaken};
pub use net::Lookup;
pub use options::{BuildError, Options};
pub use send::HttpUpstream;

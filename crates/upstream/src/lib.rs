//! Sends HTTP requests to APIs: the only place where credentials enter.
//!
//! Invariants:
//! - A request leaves only for the origin that it names, or for the route that the operator set for that origin. No redirect
//!   is followed, no proxy is taken from the environment, and no part of a path, a query or a header can choose another host.
//! - A public name leads to public addresses only. This is checked where the connection is made (`net/`).
//! - The value of a secret is read here, put into one header (marked as sensitive) or one query parameter, and appears in no
//!   error, log line or `Debug`. It is removed from answers (`redact.rs`).
//! - Every call is bounded: the time of the whole call, the bytes of the answer, calls at one time for each origin, and tries.
//! - A request that may change something is sent once. After a failed connect it is sent again, because nothing left.
//! - Errors are classified by types and predicates, never by the words of a message.

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
mod transport;

pub use collector::{Collector, CollectorError};
pub use net::NameLookup;
pub use options::{BuildError, Options};
pub use send::HttpUpstream;

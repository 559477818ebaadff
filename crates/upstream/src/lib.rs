//! Sends HTTP requests to APIs and to the telemetry collector. This crate is the only place where credentials are added
//! to requests.
//!
//! Invariants:
//! - A request is sent only to its origin, or to the route that the operator has set for this origin. Redirects are not
//!   followed, proxies of the environment are not used, and no part of a path, query or header can choose another host.
//! - The client connects to a public host name only at public addresses, and never to this server itself. The check is
//!   where the connection is made (`net/`).
//! - A secret is read only for an origin to which it is bound (`auth/`). Its value is put into one header (marked as
//!   sensitive) or one query parameter. It appears in no error, log line or `Debug`, and is removed from answers
//!   (`redact/`).
//! - Tenants that wait for the same origin are served in turn (`pace/`).
//! - Every call has limits: the time of the whole call, the bytes of the answer, the number of tries, and the number of
//!   concurrent calls to its origin.
//! - A request that may change something is sent once. It is sent again only after a failed connect, because nothing
//!   was sent then, or after a 401 for an OAuth token, because the API has refused it unprocessed.
//! - Errors are classified by their types, never by the words of a message.

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
mod own_servers;
mod pace;
mod payload;
mod redact;
mod retry;
mod send;
mod transport;

pub use collector::{Collector, CollectorError};
pub use net::NameLookup;
pub use options::{BuildError, Options};
pub use own_servers::{OwnServers, RefusedServers};
pub use send::HttpUpstream;

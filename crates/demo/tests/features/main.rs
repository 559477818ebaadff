//! Talks HTTP to a served demo API about everything beyond its plain reads: paging forms, credentials, faults, writes, GraphQL.
//! The client is written by hand: what must be seen here is the bytes on the wire, broken ones included.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in #[test] functions, but not in the helpers they share")]

mod auth;
mod catalogs;
mod control;
mod faults;
mod graphql;
mod paging;
mod served;
mod writes;

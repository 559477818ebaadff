//! Talks HTTP to a served demo API: its plain reads, paging forms, credentials, faults, writes, GraphQL.
//! The client is written by hand: what must be seen here is the bytes on the wire, broken ones included, and a client library
//! would bring TLS into this build.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used)]

mod api;
mod auth;
mod catalogs;
mod control;
mod faults;
mod graphql;
mod paging;
mod served;
mod writes;

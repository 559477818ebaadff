//! Talks HTTP to a served test API: paging forms, credentials, forms, faults, control, GraphQL, and the catalog of the store.
//! All are modules of one binary, because each binary is linked and stored separately, tens of megabytes each.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used)]

mod auth;
#[path = "../../../../demo/tests/it/caller.rs"]
mod caller;
mod catalog;
mod control;
mod faults;
mod forms;
mod graphql;
mod paging;
mod program;
mod served;

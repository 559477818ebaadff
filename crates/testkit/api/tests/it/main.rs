//! Tests of the test API over HTTP: paging, credentials, forms, faults, control, GraphQL, and the catalog of the store.
//! All tests are modules of one binary, because each further binary takes tens of megabytes and time to link.

// why: in a test, and in code that tests share, a panic is the way to fail.
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

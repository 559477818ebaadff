//! The integration tests of the service, of script runs, and of the language in whole sessions.
//! All of them are one binary, since every test binary costs tens of megabytes and a link.

// why: a failed expectation is the test's own failure, also in shared helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bounds;
mod discover;
mod error_pages;
mod golden_lang;
mod golden_scopes;
mod harness;
mod js_cancel;
mod js_crash;
mod js_fast_path;
mod js_fetch;
mod js_gc;
mod js_harness;
mod js_heap_storage;
mod js_lineage;
mod js_parked;
mod js_real;
mod js_runs;
mod js_sessions;
mod js_takeover;
mod lifecycle;
mod lines_to_copy;
mod matrix;
mod model;
mod operations;
mod pages;
mod plan_commits;
mod principals;
mod reloads;
mod retention;
mod sessions;
mod settle;
mod tasks;
mod tenant_views;
mod traces;

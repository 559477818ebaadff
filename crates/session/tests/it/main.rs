//! The service from outside: sessions, runs, JavaScript and tenants; and the language in whole sessions.
//! One binary for all of them, since every test binary costs tens of megabytes and a link.

// why: a failed expectation is the test's own failure, also in shared helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod dates;
mod discover;
mod error_pages;
mod gate;
mod golden_lang;
mod golden_scopes;
mod harness;
mod js_cancel;
mod js_crash;
mod js_fast_path;
mod js_fetch;
mod js_gc;
mod js_harness;
mod js_heap_limit;
mod js_heap_loading;
mod js_large_heaps;
mod js_lineage;
mod js_parked;
mod js_real;
mod js_runs;
mod js_session_removal;
mod js_takeover;
mod lifecycle;
mod lines_to_copy;
mod matrix;
mod memory_service;
mod model;
mod operations;
mod pages;
mod reloads;
mod retention;
mod sessions;
mod tasks;
mod tenant_views;
mod traces;

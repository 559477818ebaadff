//! The service from outside: sessions and what becomes of them, runs, JavaScript, tenants; and the language against whole sessions.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod allowed;
mod dates;
mod discover;
mod error_pages;
mod gate;
mod golden_lang;
mod house;
mod js_brief;
mod js_bring;
mod js_crash;
mod js_fetch;
mod js_found;
mod js_gc;
mod js_given_up;
mod js_house;
mod js_large;
mod js_lineage;
mod js_real;
mod js_removed;
mod js_room;
mod js_runs;
mod js_waits;
mod lifecycle;
mod lines_to_copy;
mod matrix;
mod model;
mod operations;
mod pages;
mod reloads;
mod retention;
mod scopes;
mod sessions;
mod tasks;
mod traces;
mod world;

//! Tests of tables, ledgers and discovery, over the shipped catalogs and invented ones.
//! All tests are modules of one binary, because each binary is linked and stored separately.

// A panic in a shared test function fails the test that calls it, so these lints are allowed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod discovery;
mod golden_table;
mod key_dots;
mod labelled_intents;
mod omitted_slots;
mod shipped;
mod stability;
mod support;

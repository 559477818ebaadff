//! Tests of tables, ledgers and discovery, over the shipped catalogs and invented ones.
//! All are modules of one binary, because each further binary would be linked and stored with tens of megabytes.

// why: a failed expectation is the test's own failure, also in the code that tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod discovery;
mod golden_table;
mod key_dots;
mod labelled_intents;
mod omitted_slots;
mod shipped;
mod stability;
mod support;

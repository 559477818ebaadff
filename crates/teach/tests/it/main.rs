//! What a model is taught and finds, over the shipped catalogs and invented ones.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod discovery;
mod golden_table;
mod key_dots;
mod labelled_intents;
mod omitted_slots;
mod shipped;
mod stability;
mod support;

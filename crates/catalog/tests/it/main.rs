//! The catalog format from outside: what is read and refused, how calls are bound and answers decoded, the shipped catalogs,
//! reloads.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod broken;
mod demo;
mod foreign;
mod golden_mistakes;
mod hostile;
mod large;
mod shelf;
mod shelf_properties;
mod shipped;

//! The language from outside: text to tree and back.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod format;
mod syntax;
mod syntax_properties;

//! Tests the language through its public functions, from text to tree and back.
//! All tests are in one binary, because each binary is linked and stored separately and takes tens of megabytes.

// why: a failed expectation is a test failure, also in helper functions of tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod golden;
mod syntax_properties;

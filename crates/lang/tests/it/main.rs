//! Tests of the language through its public functions: text to tree and back.
//! All tests are one binary, because each binary is linked and stored separately, with tens of megabytes each.

// why: a failed expectation is the test's own failure, also in code that tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod golden;
mod syntax_properties;

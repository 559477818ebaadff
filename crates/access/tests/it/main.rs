//! Tests of identities and API keys on in-memory ports.
// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used)]

mod keys;

//! Integration tests of the import: golden drafts, hostile input, updates, and real APIs compared with hand-written catalogs.
//! All tests are modules of one binary, because each binary is linked and stored separately.

// A panic in a shared test function fails the test that calls it, so these lints are allowed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod golden;
mod hostile;
mod reports;
mod semantics;
mod update;

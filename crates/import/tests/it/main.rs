//! Imports of specifications: golden drafts, hostile input, updates, and real APIs against catalogs that people wrote.
//! All tests are modules of one binary, since each binary is linked and stored separately.

// A failed expectation is the test's own failure, also in functions that tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod golden;
mod hostile;
mod reports;
mod semantics;
mod update;

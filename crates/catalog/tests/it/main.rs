//! The integration tests of the catalog crate: reading, refusing, binding, decoding, the shipped catalogs and
//! reloads. All tests are in one binary, because each further binary would be linked separately and need tens of
//! megabytes.

// why: a failed `unwrap` is the failure of the test, also in helpers that tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

mod broken;
mod demo;
mod foreign;
mod golden_mistakes;
mod hostile;
mod large;
mod reload;
mod reload_properties;
mod shipped;

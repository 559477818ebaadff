//! The integration tests of the catalog crate: reading, refusing, binding, decoding, the shipped catalogs and reloads.
//! They are one binary, because each further one would be linked and stored separately, with tens of megabytes.

// why: a failed expectation is the test's own failure, in what tests share too.
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

//! Tests of the demo API over HTTP: reads, writes, shutdown, and every capability of its catalog.
//! All tests are modules of one binary, because each further binary takes tens of megabytes and time to link.

// why: in a test, and in code that tests share, a panic is the way to fail.
#![allow(clippy::unwrap_used)]

mod caller;
mod catalog;
mod guard;
mod reads;
mod served;
mod shutdown;
mod writes;

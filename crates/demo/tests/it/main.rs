//! Talks HTTP to a served demo API: its reads, its writes, its shutdown, and every call of its catalog.
//! All are modules of one binary, because each binary is linked and stored separately, tens of megabytes each.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used)]

mod caller;
mod catalog;
mod reads;
mod served;
mod shutdown;
mod writes;

//! The engine as its callers see it: steps on heaps, and everything that may go wrong with them.

// why: helpers of tests; what they cannot do is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chains;
mod code;
mod completion;
mod ecmascript;
mod engines;
mod globals;
#[path = "../../build/guest.rs"]
mod guest_build;
mod guests;
mod hostile;
mod image;
mod limits;
mod repl;
mod reproduced;
mod state;
mod support;
mod turns;
mod typescript;
mod waiting;
mod web;
mod wiped;

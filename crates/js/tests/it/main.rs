//! The engine through its public interface: steps on heaps, and every failure that a caller can see.

// why: a helper that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chains;
mod code_cache;
mod completion;
mod damaged_objects;
mod ecmascript;
mod engines;
mod globals;
#[path = "../../build/guest.rs"]
mod guest_build;
mod image;
mod limits;
mod moved_guests;
mod processor_turns;
mod repl;
mod reproducible_build;
mod state;
mod support;
mod typescript;
mod waiting;
mod web;
mod wiped_values;

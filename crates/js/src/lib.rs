//! The adapter for the port `ports::Scripts`: runs JavaScript in QuickJS-NG inside Wasmtime, and stores the heap of a
//! script after each step.
//!
//! `guest/` is the C source of the guest (QuickJS as WebAssembly), `build/` compiles it, and `prelude/` defines its
//! globals. `program` parses and compiles a guest, `machine` runs a guest, `heaps` keeps heaps and guests in memory,
//! and `engine` implements the port. `image` (the stored form of heaps) and `typescript` have no effects. The README of
//! this crate describes how a step works.
//!
//! Invariants:
//! - This is the only crate that may contain `unsafe`.
//! - A heap that was imported or restored may contain hostile code. So every pointer, length and call id from a guest
//!   is checked.
//! - Loading a damaged heap returns an error with a code. The engine never replaces a damaged heap by a new one.

mod engine;
mod heaps;
pub mod image;
mod machine;
mod program;
pub mod typescript;

pub use engine::{Engine, Settings, StartError};

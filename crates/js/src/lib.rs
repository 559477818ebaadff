//! JavaScript whose heap outlives the call: QuickJS-NG in Wasmtime, heap images, limits. An adapter for
//! `ports::Scripts`.
//!
//! `guest/` and `build/` make the guest, `prelude/` its globals. `program` takes a guest apart and compiles it,
//! `machine` runs one, `heaps` keeps heaps and guests in memory, `engine` implements the port. `image` and `typescript`
//! are pure. The README of this crate describes how a step works.
//!
//! Invariants:
//! - This is the only crate that may contain `unsafe`.
//! - An image, imported or restored, may contain hostile code: every pointer, length and call id from a guest is checked.
//! - A damaged heap is an error with a code. It is never replaced by a fresh heap.

mod engine;
mod heaps;
pub mod image;
mod machine;
mod program;
pub mod typescript;

pub use engine::{Engine, Settings, StartError};

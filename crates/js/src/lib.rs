//! JavaScript whose heap outlives the call: QuickJS-NG in Wasmtime, heap images, limits. An adapter for `ports::Scripts`.
//!
//! This room is furnished by the JavaScript issue; the port it will implement is fixed in `ports::scripts`, and nothing in
//! the product names this crate yet.
//!
//! Invariants:
//! - The only crate that may contain `unsafe`.
//! - An image, imported or restored, is hostile code: every pointer, length and call id from a guest is checked.
//! - A damaged heap is an error with a code, never a fresh heap.

pub mod image;
pub mod typescript;

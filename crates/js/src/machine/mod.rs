//! A guest at work: its memory, what it may ask of us, and the calls we make into it.
//! Invariant: what a guest says is a claim. Each pointer, length and id from it is checked before it is used.

mod dirty;
mod host;
mod instance;
mod memory;
mod wire;

pub use dirty::Dirty;
pub use host::{Cut, Linked};
pub use instance::{Instance, Standing};
pub use memory::{Ground, Laying, Regions};
pub use wire::Owed;

//! A running guest: its memory, the functions that it can call on the host, and the functions that the host calls on
//! it.
//! Invariant: a guest is not trusted. Each pointer, length and id that a guest returns is checked before it is used.

mod dirty_pages;
mod guest;
mod guest_output;
mod host;
mod memory;

pub use dirty_pages::DirtyPageFinder;
pub use guest::{Guest, ScriptProgress};
pub use guest_output::GuestCall;
pub use host::{GuestError, LinkedModule};
pub use memory::{GuestMemoryCreator, MemoryFile, MemoryFileWriter};

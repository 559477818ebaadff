//! The history of heaps and sessions: the log, forks, rewinds, and the differences of two heaps.
//! Invariant: entries are only added to the log; a rewind is an entry, too.

mod fork;
mod heap;
mod log;
mod named_sessions;

pub use fork::{ForkRequest, ForkedSession};
pub use log::{Lineage, LineageNode};
pub use named_sessions::NamedSession;

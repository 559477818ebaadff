//! Where heaps come from and where sessions stand: the log, forks, rewinds, and what two heaps differ in.
//! Invariant: the log is only added to; going back is an entry, too.

mod fork;
mod heap;
mod log;
mod named;

pub use fork::{Fork, Forked};
pub use log::{Lineage, Node};
pub use named::NamedSession;

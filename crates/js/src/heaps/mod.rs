//! Heaps in memory: what they hold, how they stand on each other, and which of them are kept.
//! Invariant: a heap never changes. Heaps of one lineage share the pages they have in common.

mod held;
mod page;
mod reading;
mod shelf;

pub use held::{Held, LINKS_MOST, gather, over_most};
pub use page::{Ledger, Page};
pub use reading::{Reading, Reads};
pub use shelf::{Live, Shelf};

//! The parts that every durable run needs, program or script: the lease of its owner, and the knowledge of which owners
//! have died or are frozen.
//!
//! Invariants:
//! - A run belongs to one process, its owner. Another process becomes the owner only by raising the epoch of the run's lease, in a
//!   transaction that requires the version that it read.
//! - Every transaction for a run's effects checks the row of the lease, so an owner that lost it cannot write.
//! - No two clocks are compared. An owner counts as frozen when an observer has seen the same renewal for a whole lease, on the
//!   observer's own monotonic clock.

mod lease;
mod owners;

pub use lease::Lease;
pub use owners::{LEASE, Owners, RENEWAL, Standing, UnknownPeers};

//! The steps that make several API reads: follow, deref, attach, hydrate and one list per row.
//! Invariant: rows are in the order of the input, even if the answers arrive in another order. The origin's limit bounds
//! concurrent calls, and the plan bounds their number.

pub mod follow;
pub mod hydrate;
pub mod lookup;
pub mod per_row;

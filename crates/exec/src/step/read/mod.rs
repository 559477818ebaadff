//! Steps that read the API.
//! Invariant: rows come out in the order of their input, whatever order the answers came in. The origin's limit bounds
//! concurrent calls, and the plan bounds their number.

pub mod follow;
pub mod hydrate;
pub mod lookup;
pub mod per_row;

//! Steps that make rows from rows: no call, no wait.
//! Invariant: each is a function of its input; rows that pass through are shared, not copied; coverage and the order of what
//! came first are kept as they are known.

pub mod aggregate;
pub mod distinct;
pub mod filter;
pub mod group;
pub mod pick;
pub mod project;
pub mod sort;

//! JSON values as data: when two are the same, and which comes first.
//! Invariant: nothing here knows of rows or steps.

pub mod hash;
pub mod order;

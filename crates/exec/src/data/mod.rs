//! JSON values as data: equality, hashing and order.
//! Invariant: this module does not know rows or steps.

pub mod equality;
pub mod number;
pub mod order;

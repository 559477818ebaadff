//! Steps that read the API.
//! Invariant: rows come out in the order of what they belong to, whatever order the answers came in; at most as many calls are
//! under way at once as the origin allows, and no more are made than the plan said.

pub mod attach;
pub mod fan;
pub mod follow;
pub mod hydrate;
pub mod lookup;
pub mod page;

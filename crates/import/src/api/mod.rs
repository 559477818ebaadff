//! Questions about one operation: its path, the rows of its answer, its types, its paging, the credential and the origin.
//! Invariant: nothing here knows of entities.

pub mod answer;
pub mod auth;
pub mod origin;
pub mod paging;
pub mod path;
pub mod types;

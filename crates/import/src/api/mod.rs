//! What an operation says by itself: its path, what its answer holds, its types, its pages, and how calls are signed.
//! Invariant: nothing here knows of entities; every function takes what the specification says and guesses nothing more.

pub mod answer;
pub mod auth;
pub mod origin;
pub mod paging;
pub mod path;
pub mod types;

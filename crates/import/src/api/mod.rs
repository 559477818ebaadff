//! Analysis of single operations: the path, the rows of the answer, types, paging, the credential and the origin.
//! Invariant: these modules do not depend on entities or on the stages of `map`.

pub mod answer;
pub mod auth;
pub mod origin;
pub mod paging;
pub mod path;
pub mod types;

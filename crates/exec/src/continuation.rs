//! Where a list that was not read to its end goes on.
//! Invariant: it is data, so that a later run, or another process, can read on from there.

use catalog::{Args, PageRequest};
use lang::plan::CapabilityRef;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    pub call: CapabilityRef,
    pub args: Args,
    /// None where the API has no pages: the list is read again and what was seen is passed over.
    pub page: Option<PageRequest>,
    /// Rows of that page that were given already.
    pub skip: usize,
    /// Rows that came before that page.
    pub seen: usize,
}

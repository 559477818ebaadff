//! The position from which an unfinished list is read on.
//! Invariant: a continuation is plain data, so a later run or another process can use it.

use catalog::{Args, PageRequest};
use lang::plan::CapabilityRef;
use serde::{Deserialize, Serialize};

/// Where a list goes on: the call, its arguments and the position in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    pub call: CapabilityRef,
    pub args: Args,
    /// The page to ask for. `None` if the API has no pages: the list is then read again from its start and `skip`
    /// rows are dropped.
    pub page: Option<PageRequest>,
    /// Rows of that page that were already returned.
    pub skip: usize,
    /// Rows that came before that page.
    pub seen: usize,
}

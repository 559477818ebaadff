//! Heaps as they are stored: one, a list of them, and `diff_heaps`.

use access::Caller;
use base::Digest;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{HeapDiff, HeapInfo};

use crate::call::{App, Call};
use crate::error::Error;

/// The properties of one heap, known without loading it.
#[derive(Debug, Clone)]
pub struct ShowHeap {
    pub heap: String,
}

impl Call for ShowHeap {
    const NAME: &'static str = "show_heap";
    type Answer = HeapInfo;

    async fn run(&self, app: &App, caller: &Caller) -> Result<HeapInfo, Error> {
        Ok(app.service().heap_info(caller, &self.heap).await?)
    }
}

/// Heaps in the order of their keys.
#[derive(Debug, Clone)]
pub struct ListHeaps {
    /// The last heap of the page before.
    pub after: Option<Digest>,
    pub limit: usize,
}

impl Call for ListHeaps {
    const NAME: &'static str = "list_heaps";
    type Answer = Vec<HeapInfo>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<HeapInfo>, Error> {
        Ok(app.service().heaps(caller, self.after, self.limit).await?)
    }
}

/// The globals that two heaps differ in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffHeaps {
    pub a: String,
    pub b: String,
}

impl Call for DiffHeaps {
    const NAME: &'static str = "diff_heaps";
    type Answer = HeapDiff;

    async fn run(&self, app: &App, caller: &Caller) -> Result<HeapDiff, Error> {
        Ok(app.service().diff_heaps(caller, &self.a, &self.b).await?)
    }
}

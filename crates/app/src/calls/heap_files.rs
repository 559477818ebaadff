//! Heaps as files, and pins that keep a heap in storage.

use access::Caller;
use base::Digest;
use session::Tags;

use crate::call::{App, Call};
use crate::error::Error;

/// The heap with its engine, as one file.
#[derive(Debug, Clone)]
pub struct ExportHeap {
    pub heap: String,
}

impl Call for ExportHeap {
    const NAME: &'static str = "export_heap";
    type Answer = Vec<u8>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<u8>, Error> {
        Ok(app.service().export_heap(caller, &self.heap).await?)
    }
}

/// Stores the heap of a file, with tags.
#[derive(Debug, Clone)]
pub struct ImportHeap {
    /// The content of the file.
    pub file: Vec<u8>,
    /// The tags that keep the heap in storage.
    pub tags: Tags,
}

impl Call for ImportHeap {
    const NAME: &'static str = "import_heap";
    type Answer = Digest;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Digest, Error> {
        Ok(app.service().import_heap(caller, &self.file, &self.tags).await?)
    }
}

/// Keeps a heap with all of its ancestors in storage, or lets it be collected again.
#[derive(Debug, Clone)]
pub struct PinHeap {
    pub heap: String,
    pub pinned: bool,
}

impl Call for PinHeap {
    const NAME: &'static str = "pin_heap";
    type Answer = Digest;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Digest, Error> {
        Ok(app.service().pin_heap(caller, &self.heap, self.pinned).await?)
    }
}

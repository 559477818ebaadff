//! Heaps that someone keeps.
//! Invariant: a heap that is pinned is in storage with all it stands on, and stays there until it is unpinned.

use base::Digest;
use ports::store::Batch;

use super::heaps::parse_key;
use crate::commit::TRIES;
use crate::engine::rows::HeapRow;
use crate::error::{Error, JsError};
use crate::service::Service;
use access::Caller;

impl Service {
    /// Keeps a heap, whatever leads to it, or no longer.
    pub async fn pin_heap(&self, caller: &Caller, heap: &str, pinned: bool) -> Result<Digest, Error> {
        self.js()?;
        let (tenant, key) = (&caller.tenant, parse_key(heap)?);
        for _ in 0..TRIES {
            // One that was condemned is another row when it is saved, which the next try finds.
            let stored = self.save_heap(tenant, key).await?.ok_or(JsError::NoHeap(key))?;
            if stored.row.pinned == pinned && stored.row.condemned.is_none() {
                return Ok(key);
            }
            let row = HeapRow { pinned, condemned: None, ..stored.row.clone() };
            let batch = Batch { writes: vec![stored.changed(tenant, key, &row)] };
            if self.try_commit(batch).await?.is_some() {
                return Ok(key);
            }
        }
        Err(Error::Busy)
    }
}

//! Heaps in memory: a loaded heap, loading from objects, and the cache of heaps and live guests.
//! Invariant: a loaded heap never changes. Heaps that descend from each other share the pages that are equal in both.

mod heap_cache;
mod loaded_heap;
mod loader;
mod page;

pub use heap_cache::{HeapCache, LiveGuest};
pub use loaded_heap::{LoadedHeap, MAX_LINKS, ObjectParent, gathered_parent, max_overlay_pages};
pub use loader::{HeapLoader, LoadAs};
pub use page::{HeapPage, PagePool};

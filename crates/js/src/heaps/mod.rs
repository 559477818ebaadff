//! Heaps in memory: the loaded heap, the loader that builds one from its object, and the cache of loaded heaps and live
//! guests. An object is the stored form of a heap: the difference to a parent heap. A live guest is a guest that stays
//! instantiated between two steps.
//! Invariant: a loaded heap never changes. Heaps that descend from each other share the pages that are equal in both.

mod heap_cache;
mod loaded_heap;
mod loader;
mod page;

pub use heap_cache::{HeapCache, LiveGuest};
pub use loaded_heap::{LoadedHeap, MAX_LINKS, ObjectParent, gathered_parent, max_overlay_pages};
pub use loader::{HeapLoader, LoadAs};
pub use page::{HeapPage, PagePool};

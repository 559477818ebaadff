//! The heap cache: recently used heaps and the guests that are alive on them, within a byte budget.
//! Invariant: everything that is evicted can be loaded again. Nothing exists only here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::Digest;

use crate::machine::Guest;

use super::loaded_heap::LoadedHeap;
use super::page::{Charge, PagePool};

/// A guest that was idle for this time may be moved to another heap.
const REUSABLE_AFTER: Duration = Duration::from_millis(100);

/// The number of idle guests that are examined for one that fits. It bounds the time under the lock.
const MAX_EXAMINED: usize = 64;

/// A guest whose memory equals a heap.
pub struct LiveGuest {
    pub guest: Guest,
    pub heap: Arc<LoadedHeap>,
    /// The time of the last step.
    idle_since: Instant,
    /// The pages that the guest has written, which it does not share with the heap's memory file.
    _charge: Charge,
}

impl LiveGuest {
    pub fn new(guest: Guest, heap: Arc<LoadedHeap>, charge: Charge) -> Self {
        Self { guest, heap, idle_since: Instant::now(), _charge: charge }
    }
}

pub struct HeapCache {
    pool: Arc<PagePool>,
    /// The bytes that heaps and guests may use together.
    budget_bytes: usize,
    max_guests: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    heaps: LruMap<Arc<LoadedHeap>>,
    guests: LruMap<LiveGuest>,
    /// The last use number that was given out. One counter for both maps, so that their oldest entries can be compared.
    last_use: u64,
}

impl HeapCache {
    pub fn new(budget_bytes: usize, max_guests: usize) -> Self {
        Self { pool: Arc::new(PagePool::default()), budget_bytes, max_guests, entries: Mutex::default() }
    }

    pub fn pool(&self) -> &Arc<PagePool> {
        &self.pool
    }

    pub fn get(&self, key: &Digest) -> Option<Arc<LoadedHeap>> {
        let mut entries = self.entries();
        let use_number = entries.next_use();
        entries.heaps.touch(use_number, key).cloned()
    }

    /// Returns whether the heap, or a guest on it, is in memory.
    pub fn has(&self, key: &Digest) -> bool {
        let entries = self.entries();
        entries.heaps.contains(key) || entries.guests.contains(key)
    }

    pub fn has_guest(&self, key: &Digest) -> bool {
        self.entries().guests.contains(key)
    }

    /// Removes and returns a guest that is alive on this heap.
    pub fn take_guest(&self, key: &Digest) -> Option<LiveGuest> {
        self.entries().guests.take(key)
    }

    /// Removes and returns a guest of another heap that can be moved to this heap: the spare guest on the base image,
    /// else one that has been idle for long, else, if the cache is full, the one that has been idle longest. The guest
    /// must share the memory file, since only its own pages are rewritten, and must not be larger than the heap, since
    /// a memory never shrinks.
    pub fn take_reusable(&self, heap: &LoadedHeap, base: &LoadedHeap) -> Option<LiveGuest> {
        let fits = |live: &LiveGuest| live.heap.shares_file_with(heap) && live.guest.pages() <= heap.image.pages();
        let mut entries = self.entries();
        if entries.guests.newest_of(&base.key()).is_some_and(fits) {
            return entries.guests.take(&base.key());
        }
        let is_full = entries.guests.len() >= self.max_guests;
        entries.guests.take_oldest(|live| is_full || live.idle_since.elapsed() >= REUSABLE_AFTER, fits)
    }

    /// Returns whether no spare guest is ready on the base image.
    pub fn needs_spare_guest(&self, base: &LoadedHeap) -> bool {
        self.max_guests > 0 && !self.has_guest(&base.key())
    }

    pub fn put(&self, heap: Arc<LoadedHeap>) {
        let mut entries = self.entries();
        let use_number = entries.next_use();
        let replaced = entries.heaps.take(&heap.key());
        entries.heaps.put(use_number, heap.key(), heap);
        self.evict_over_budget(entries);
        // Freed after the lock was released, because freeing pages takes long.
        drop(replaced);
    }

    /// Adds a guest and returns those that are evicted for it. The caller drops them when there is time; they are not
    /// charged any more, or heaps would be evicted although enough memory is about to be freed.
    ///
    /// A heap may have several guests: sessions that reach the same heap each have one, since mapping and writing a new
    /// guest for the others costs four times as much as a step.
    #[must_use]
    pub fn put_guest(&self, live: LiveGuest) -> Vec<Guest> {
        let mut entries = self.entries();
        let use_number = entries.next_use();
        entries.guests.put(use_number, live.heap.key(), live);
        let mut evicted = Vec::new();
        while entries.guests.len() > self.max_guests {
            evicted.extend(entries.guests.pop_oldest().map(|live| live.guest));
        }
        self.evict_over_budget(entries);
        evicted
    }

    pub fn clear(&self) {
        // The entries are dropped after the lock was released.
        let removed = std::mem::take(&mut *self.entries());
        drop(removed);
    }

    /// Evicts the least recently used heaps and guests until the charged bytes are within the budget.
    fn evict_over_budget(&self, mut entries: MutexGuard<'_, Entries>) {
        // Entries share pages, so the amount that an eviction frees is known only after the entry was dropped.
        while self.pool.charged_bytes() > self.budget_bytes {
            let guest_is_older = entries.guests.oldest_use() < entries.heaps.oldest_use();
            if guest_is_older {
                drop(entries.guests.pop_oldest());
            } else if let Some(heap) = entries.heaps.pop_oldest() {
                drop(heap);
            } else {
                break;
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Each change is one call of a map, so the maps of a thread that panicked are usable.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn next_use(&mut self) -> u64 {
        self.last_use += 1;
        self.last_use
    }
}

/// Values by key, in the order of their last use. A key may have several values.
struct LruMap<T> {
    /// The values with their use numbers, the oldest first.
    by_key: HashMap<Digest, Vec<(u64, T)>>,
    /// The key of each use number.
    by_use: BTreeMap<u64, Digest>,
}

impl<T> Default for LruMap<T> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), by_use: BTreeMap::new() }
    }
}

impl<T> LruMap<T> {
    /// Adds a value. `use_number` is larger than all earlier ones.
    fn put(&mut self, use_number: u64, key: Digest, value: T) {
        self.by_use.insert(use_number, key);
        self.by_key.entry(key).or_default().push((use_number, value));
    }

    fn contains(&self, key: &Digest) -> bool {
        self.by_key.contains_key(key)
    }

    fn len(&self) -> usize {
        self.by_use.len()
    }

    /// Removes and returns the most recently used value of a key.
    fn take(&mut self, key: &Digest) -> Option<T> {
        let newest = self.by_key.get(key)?.len().checked_sub(1)?;
        self.remove(key, newest)
    }

    fn newest_of(&self, key: &Digest) -> Option<&T> {
        self.by_key.get(key)?.last().map(|(_, value)| value)
    }

    /// Gives the most recently used value of a key a new use number.
    fn touch(&mut self, use_number: u64, key: &Digest) -> Option<&T> {
        let (old_use, value) = self.by_key.get_mut(key)?.last_mut()?;
        self.by_use.remove(old_use);
        self.by_use.insert(use_number, *key);
        *old_use = use_number;
        Some(value)
    }

    fn oldest_use(&self) -> u64 {
        self.by_use.first_key_value().map_or(u64::MAX, |(use_number, _)| *use_number)
    }

    fn pop_oldest(&mut self) -> Option<T> {
        let (use_number, key) = self.by_use.first_key_value().map(|(use_number, key)| (*use_number, *key))?;
        let index = self.index_of(&key, use_number)?;
        self.remove(&key, index)
    }

    /// Removes and returns the oldest value that is `old_enough` and `fits`. Newer values follow in the order, so the
    /// search ends at the first value that is not old enough.
    fn take_oldest(&mut self, old_enough: impl Fn(&T) -> bool, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut fitting = None;
        for (use_number, key) in self.by_use.iter().take(MAX_EXAMINED) {
            let index = self.index_of(key, *use_number)?;
            let (_, value) = self.by_key.get(key)?.get(index)?;
            if !old_enough(value) {
                break;
            }
            if fits(value) {
                fitting = Some((*key, index));
                break;
            }
        }
        fitting.and_then(|(key, index)| self.remove(&key, index))
    }

    fn index_of(&self, key: &Digest, use_number: u64) -> Option<usize> {
        self.by_key.get(key)?.binary_search_by_key(&use_number, |(value_use, _)| *value_use).ok()
    }

    fn remove(&mut self, key: &Digest, index: usize) -> Option<T> {
        let values = self.by_key.get_mut(key).filter(|values| index < values.len())?;
        let (use_number, value) = values.remove(index);
        if values.is_empty() {
            self.by_key.remove(key);
        }
        self.by_use.remove(&use_number);
        Some(value)
    }
}

//! The heap cache: recently used loaded heaps and live guests, within a byte budget. A live guest is a guest that stays
//! instantiated after its step, so that the next step on its heap starts at once.
//! Invariant: every evicted heap can be loaded again from its stored objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::Digest;

use crate::machine::Guest;

use super::loaded_heap::LoadedHeap;
use super::page::{Charge, PagePool};

/// A live guest that was idle for this time may be moved to another heap.
const MIN_IDLE_TIME_TO_MOVE: Duration = Duration::from_millis(100);

/// The number of idle guests that a search examines. It bounds the time for which the search holds the lock.
const MAX_EXAMINED_GUESTS: usize = 64;

/// A guest whose memory equals a heap.
pub struct LiveGuest {
    pub guest: Guest,
    pub heap: Arc<LoadedHeap>,
    /// The end of the guest's last step.
    idle_since: Instant,
    /// Counts the pages that the guest has written. They are private copies of pages of the heap's memory file.
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
    /// The last use number that was assigned. Both maps use one counter, so that their oldest entries can be compared.
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

    /// Returns whether the heap or a live guest of the heap is in memory.
    pub fn has(&self, key: &Digest) -> bool {
        let entries = self.entries();
        entries.heaps.contains(key) || entries.guests.contains(key)
    }

    pub fn has_guest(&self, key: &Digest) -> bool {
        self.entries().guests.contains(key)
    }

    /// Removes and returns a live guest of this heap.
    pub fn take_guest(&self, key: &Digest) -> Option<LiveGuest> {
        self.entries().guests.take(key)
    }

    /// Removes and returns a live guest of another heap that can be moved to `heap`: the spare guest on the base image,
    /// or the guest that has been idle longest, if it was idle for `MIN_IDLE_TIME_TO_MOVE` or the cache is full. The guest
    /// must have the same memory file, because a move rewrites only the pages that the guest has written. The guest
    /// must not be larger than the heap, because a WebAssembly memory never shrinks.
    pub fn take_reusable(&self, heap: &LoadedHeap, base: &LoadedHeap) -> Option<LiveGuest> {
        let fits = |live: &LiveGuest| live.heap.shares_file_with(heap) && live.guest.pages() <= heap.image.pages();
        let mut entries = self.entries();
        if entries.guests.newest_of(&base.key()).is_some_and(fits) {
            return entries.guests.take(&base.key());
        }
        let is_full = entries.guests.len() >= self.max_guests;
        entries.guests.take_oldest(|live| is_full || live.idle_since.elapsed() >= MIN_IDLE_TIME_TO_MOVE, fits)
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
        // The replaced heap is dropped after the lock was released, because freeing its pages takes long.
        drop(replaced);
    }

    /// Adds a live guest and returns the guests that were evicted for it. The caller drops the evicted guests when
    /// there is time. Their memory is no longer charged; otherwise heaps would be evicted although enough memory is
    /// about to be freed.
    ///
    /// A heap may have several live guests: sessions that reach the same heap have one each, because making a new guest
    /// costs four times as much as a step.
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
        // Entries share pages. So the number of freed bytes is known only after an entry was dropped, and the loop
        // measures again.
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
        // Each change under the lock is one call of a map, so the maps stay usable after a panic.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn next_use(&mut self) -> u64 {
        self.last_use += 1;
        self.last_use
    }
}

/// A map that keeps its values in the order of their last use. A key may have several values.
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
    /// Adds a value. `use_number` must be larger than all earlier use numbers.
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

    /// Assigns a new use number to the most recently used value of a key, and returns the value.
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

    /// Removes and returns the least recently used value for which `old_enough` and `fits` return true. The search goes
    /// from old to new, so it ends at the first value that is not old enough.
    fn take_oldest(&mut self, old_enough: impl Fn(&T) -> bool, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut fitting = None;
        for (use_number, key) in self.by_use.iter().take(MAX_EXAMINED_GUESTS) {
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

//! Which heaps are kept in memory, and which guests are kept alive on them: the most recently used, within a budget.
//! Invariant: what is dropped here can be brought again; nothing is kept only here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Digest;

use crate::machine::Instance;

use super::held::Held;
use super::page::{Entry, Ledger};

/// A guest whose memory is this heap.
pub struct Live {
    pub instance: Instance,
    pub held: Arc<Held>,
    /// Of the pages it has written; counted as long as it lives.
    pub _counted: Entry,
}

pub struct Shelf {
    ledger: Arc<Ledger>,
    budget: usize,
    live_most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    heaps: Recent<Arc<Held>>,
    live: Recent<Live>,
    uses: u64,
}

/// By key, and in the order of their last use. One key may have several.
struct Recent<T> {
    found: HashMap<Digest, Vec<(u64, T)>>,
    order: BTreeMap<u64, Digest>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { found: HashMap::new(), order: BTreeMap::new() }
    }
}

impl<T> Recent<T> {
    fn put(&mut self, use_: u64, key: Digest, value: T) {
        self.order.insert(use_, key);
        self.found.entry(key).or_default().push((use_, value));
    }

    /// The one that was used last.
    fn take(&mut self, key: &Digest) -> Option<T> {
        let last = self.found.get(key)?.len().checked_sub(1)?;
        self.remove(key, last)
    }

    fn remove(&mut self, key: &Digest, at: usize) -> Option<T> {
        let all = self.found.get_mut(key).filter(|all| at < all.len())?;
        let (used, value) = all.remove(at);
        if all.is_empty() {
            self.found.remove(key);
        }
        self.order.remove(&used);
        Some(value)
    }

    fn touch(&mut self, use_: u64, key: &Digest) -> Option<&T> {
        let (used, value) = self.found.get_mut(key)?.last_mut()?;
        self.order.remove(used);
        self.order.insert(use_, *key);
        *used = use_;
        Some(value)
    }

    fn oldest(&mut self) -> Option<T> {
        let (used, key) = self.order.first_key_value().map(|(used, key)| (*used, *key))?;
        let at = self.found.get(&key)?.iter().position(|(at, _)| *at == used)?;
        self.remove(&key, at)
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn oldest_use(&self) -> u64 {
        self.order.first_key_value().map_or(u64::MAX, |(used, _)| *used)
    }
}

impl Shelf {
    pub fn new(budget: usize, live_most: usize) -> Self {
        Self { ledger: Arc::new(Ledger::default()), budget, live_most, kept: Mutex::default() }
    }

    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    pub fn get(&self, key: &Digest) -> Option<Arc<Held>> {
        let mut kept = self.kept();
        let use_ = kept.next_use();
        kept.heaps.touch(use_, key).cloned()
    }

    /// Whether the heap, or a guest on it, is here.
    pub fn has(&self, key: &Digest) -> bool {
        let kept = self.kept();
        kept.heaps.found.contains_key(key) || kept.live.found.contains_key(key)
    }

    /// The guest on this heap, if one is alive: it is the caller's now.
    pub fn take_live(&self, key: &Digest) -> Option<Live> {
        self.kept().live.take(key)
    }

    pub fn put(&self, held: Arc<Held>) {
        let mut kept = self.kept();
        let use_ = kept.next_use();
        let old = kept.heaps.take(&held.key());
        kept.heaps.put(use_, held.key(), held);
        self.shrink(kept);
        drop(old);
    }

    /// Sessions that came to the same heap each have a guest on it: one for all would be a mapping made and written anew for
    /// each of the others, four times the cost of a step.
    pub fn put_live(&self, live: Live) {
        let mut kept = self.kept();
        let use_ = kept.next_use();
        kept.live.put(use_, live.held.key(), live);
        self.shrink(kept);
    }

    /// Lets all go.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.kept());
        drop(gone);
    }

    /// Lets the least recently used go until all is within the budget.
    fn shrink(&self, mut kept: MutexGuard<'_, Kept>) {
        let mut gone = Vec::new();
        while kept.live.len() > self.live_most {
            gone.extend(kept.live.oldest());
        }
        // Freeing is what makes the ledger smaller, so it happens one at a time here, and only when it must.
        while self.ledger.bytes() > self.budget {
            let live_first = kept.live.oldest_use() < kept.heaps.oldest_use();
            if live_first {
                drop(kept.live.oldest());
            } else if let Some(held) = kept.heaps.oldest() {
                drop(held);
            } else {
                break;
            }
        }
        drop(kept);
        drop(gone);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A holder that panicked left maps that are whole: each change to them is one call.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}

//! Which heaps are kept in memory, and which guests are kept alive on them: the most recently used, within a budget.
//! Invariant: what is dropped here can be brought again; nothing is kept only here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::Digest;

use crate::machine::Instance;

use super::held::Held;
use super::page::{Entry, Ledger};

/// A guest that was not asked for so long is given to another heap.
const IDLE: Duration = Duration::from_millis(100);

/// Of guests that may be given away, so many are looked at.
const LOOKED_AT: usize = 64;

/// A guest whose memory is this heap.
pub struct Live {
    pub instance: Instance,
    pub held: Arc<Held>,
    /// Since when nobody asks for it.
    since: Instant,
    /// Of the pages it has written; counted as long as it lives.
    _counted: Entry,
}

impl Live {
    pub fn new(instance: Instance, held: Arc<Held>, counted: Entry) -> Self {
        Self { instance, held, since: Instant::now(), _counted: counted }
    }
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
    /// With their last use, in its order.
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

    fn last(&self, key: &Digest) -> Option<&T> {
        self.found.get(key)?.last().map(|(_, value)| value)
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
        let at = self.found.get(&key)?.binary_search_by_key(&used, |(at, _)| *at).ok()?;
        self.remove(&key, at)
    }

    /// The oldest one of which this is so, if it is among the first of which `old` is.
    fn oldest_that(&mut self, old: impl Fn(&T) -> bool, so: impl Fn(&T) -> bool) -> Option<T> {
        let mut found = None;
        for (used, key) in self.order.iter().take(LOOKED_AT) {
            let all = self.found.get(key)?;
            let at = all.binary_search_by_key(used, |(at, _)| *at).ok()?;
            let (_, value) = all.get(at)?;
            if !old(value) {
                break;
            }
            if so(value) {
                found = Some((*key, at));
                break;
            }
        }
        found.and_then(|(key, at)| self.remove(&key, at))
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

    pub fn has_live(&self, key: &Digest) -> bool {
        self.kept().live.found.contains_key(key)
    }

    /// The guest on this heap, if one is alive: it is the caller's now.
    pub fn take_live(&self, key: &Digest) -> Option<Live> {
        self.kept().live.take(key)
    }

    /// A guest that can be made to stand on this heap, which nobody will miss: one that belongs to nobody, one that was idle for
    /// long, or, where there are as many as there may be, the one that was idle longest.
    pub fn take_spare(&self, held: &Held, base: &Held) -> Option<Live> {
        let fits = |live: &Live| live.held.stands_beside(held) && live.instance.pages() <= held.image.pages();
        let mut kept = self.kept();
        if kept.live.last(&base.key()).is_some_and(fits) {
            return kept.live.take(&base.key());
        }
        let full = kept.live.len() >= self.live_most;
        kept.live.oldest_that(|live| full || live.since.elapsed() >= IDLE, fits)
    }

    /// Whether there is no guest that belongs to nobody.
    pub fn wants_spare(&self, base: &Held) -> bool {
        self.live_most > 0 && !self.has_live(&base.key())
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
    /// each of the others, four times the cost of a step. Who has to go for it: to be dropped when there is time,
    /// and counted no more, or heaps would go for what goes anyway.
    #[must_use]
    pub fn put_live(&self, live: Live) -> Vec<Instance> {
        let mut kept = self.kept();
        let use_ = kept.next_use();
        kept.live.put(use_, live.held.key(), live);
        let mut gone = Vec::new();
        while kept.live.len() > self.live_most {
            gone.extend(kept.live.oldest().map(|live| live.instance));
        }
        self.shrink(kept);
        gone
    }

    /// Lets all go.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.kept());
        drop(gone);
    }

    /// Lets the least recently used go until all is within the budget.
    fn shrink(&self, mut kept: MutexGuard<'_, Kept>) {
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

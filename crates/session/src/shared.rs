//! What callers of this process share: a lock, and things by name, for as long as one of them holds it.
//! Invariant: whoever asks for a name while somebody has it gets the same one; nothing is kept for a name that nobody has.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(crate) struct Shared<K, T>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T> Default for Shared<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, T> Shared<K, T> {
    pub fn of<Q>(&self, name: &Q, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut all = lock(&self.0);
        if let Some(known) = all.get(name).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, weak| weak.strong_count() > 0);
        let fresh = Arc::new(make());
        all.insert(name.to_owned(), Arc::downgrade(&fresh));
        fresh
    }

    /// The one that somebody has.
    pub fn known<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        lock(&self.0).get(name).and_then(Weak::upgrade)
    }
}

/// For what is a cache or a list: each change to it is one call, so that a holder that panicked never left half a fact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

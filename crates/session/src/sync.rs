//! Shared state of this process: a lock helper, and values by name that live as long as a task holds them.
//! Invariant: tasks that ask for the same name at the same time get the same value; no value is kept for an unused
//! name.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Values by name, each kept only as long as it is used.
pub(crate) struct WeakMap<K, T>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T> Default for WeakMap<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, T> WeakMap<K, T> {
    /// Returns the value of a name, created if no task holds it.
    pub fn get_or_create<Q>(&self, name: &Q, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut values = lock(&self.0);
        if let Some(existing) = values.get(name).and_then(Weak::upgrade) {
            return existing;
        }
        // Removed only here: an insertion is the only way the map grows, and dropping a value does not lock the map.
        values.retain(|_, weak| weak.strong_count() > 0);
        let created = Arc::new(make());
        values.insert(name.to_owned(), Arc::downgrade(&created));
        created
    }

    /// Returns the value, if a task holds it.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        lock(&self.0).get(name).and_then(Weak::upgrade)
    }
}

/// Locks a cache or a list. Ignoring a poisoned lock is safe there, because each change is a single call, so a panic
/// never leaves half a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The words of what is offered, kept from one registry to the next.
//! Invariant: a catalog that did not change is not read again.

use std::sync::{Arc, Mutex, PoisonError};

use catalog::Registry;
use teach::discovery::Index;

/// The index of the registry that was last asked for; the next one is made from it, so a reload costs what it changed.
#[derive(Default)]
pub struct Indexed(Mutex<Option<(Arc<Registry>, Arc<Index>)>>);

impl Indexed {
    pub fn of(&self, registry: &Arc<Registry>) -> Arc<Index> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &*last {
            Some((same, index)) if Arc::ptr_eq(same, registry) => return index.clone(),
            Some((_, before)) => Arc::new(before.next(registry)),
            None => Arc::new(Index::new(registry)),
        };
        *last = Some((registry.clone(), index.clone()));
        index
    }
}

//! The type `SentSecrets`: the secrets that each origin has received in this process.
//! An API may echo a secret in the answer to another call than the one that carried it, so an answer is cleaned of all
//! secrets that a tenant has sent to its origin.
//! Invariant: the secrets of the current call are always among those that are removed from its answer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Origin, Secret, TenantId};

use super::Redactor;

/// The largest number of secrets of a tenant at one origin that are remembered. Tokens of OAuth change often, so the
/// oldest secrets are forgotten.
const MAX_SECRETS: usize = 32;
/// The largest number of pairs of tenant and origin that are remembered.
const MAX_ENTRIES: usize = 4_096;

#[derive(Default)]
pub(crate) struct SentSecrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_origin: HashMap<(TenantId, Origin), OriginSecrets>,
    /// The number of calls so far. It serves as the clock for `OriginSecrets::last_use`.
    uses: u64,
}

struct OriginSecrets {
    /// The secrets, the one that was sent last at the end.
    values: VecDeque<Secret>,
    redactor: Arc<Redactor>,
    last_use: u64,
}

impl SentSecrets {
    /// Records the secrets of a call. Returns the redactor for its answer, or `None` if this origin has never received a
    /// secret of the tenant.
    ///
    /// The secrets are kept apart by tenant: otherwise a tenant could find out, by sending guesses to an API that echoes
    /// them, which of them is the secret of another tenant.
    pub(crate) fn record(&self, tenant: &TenantId, origin: &Origin, values: &[Secret]) -> Option<Arc<Redactor>> {
        let key = (tenant.clone(), origin.clone());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let now = state.uses;
        if values.is_empty() && !state.by_origin.contains_key(&key) {
            return None;
        }
        if state.by_origin.len() >= MAX_ENTRIES && !state.by_origin.contains_key(&key) {
            let oldest = state.by_origin.iter().min_by_key(|(_, entry)| entry.last_use).map(|(key, _)| key.clone());
            oldest.map(|oldest| state.by_origin.remove(&oldest));
        }
        let entry = state.by_origin.entry(key).or_insert_with(|| OriginSecrets {
            values: VecDeque::new(),
            redactor: Arc::new(Redactor::new([])),
            last_use: now,
        });
        entry.last_use = now;
        entry.record(values);
        Some(Arc::clone(&entry.redactor))
    }
}

impl OriginSecrets {
    fn record(&mut self, values: &[Secret]) {
        let mut has_new = false;
        for value in values {
            let known = self.values.iter().position(|known| known.expose() == value.expose());
            has_new |= known.is_none();
            let value = known.and_then(|index| self.values.remove(index)).unwrap_or_else(|| value.clone());
            self.values.push_back(value);
        }
        while self.values.len() > MAX_SECRETS.max(values.len()) {
            self.values.pop_front();
        }
        if has_new {
            self.redactor = Arc::new(Redactor::new(self.values.iter().map(Secret::expose)));
        }
    }
}

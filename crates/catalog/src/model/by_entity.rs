//! Which capabilities belong to which entity, so that nobody goes through all of them.
//! Invariant: made when it is first asked for, and never changed after; a copy of a catalog starts without one, so a copy may
//! be changed before it is used.

use std::collections::HashMap;
use std::sync::OnceLock;

use indexmap::IndexMap;

use super::Capability;

#[derive(Default)]
pub struct ByEntity(OnceLock<HashMap<String, Vec<usize>>>);

impl ByEntity {
    /// Their positions, in the catalog's order.
    pub fn of(&self, capabilities: &IndexMap<String, Capability>, entity: &str) -> &[usize] {
        let made = self.0.get_or_init(|| {
            let mut found: HashMap<String, Vec<usize>> = HashMap::new();
            for (at, capability) in capabilities.values().enumerate() {
                found.entry(capability.entity.clone()).or_default().push(at);
            }
            found
        });
        made.get(entity).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Clone for ByEntity {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// It says nothing that the capabilities do not say.
impl PartialEq for ByEntity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for ByEntity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByEntity")
    }
}

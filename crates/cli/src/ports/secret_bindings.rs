//! The type `SecretBindings`: the origins to which each secret may be sent.
//!
//! A catalog's author chooses the names of the secrets that the catalog uses, so a name alone must not decide which server
//! receives a secret. The origins come from the shipped catalogs, from the table `[secrets]` of the settings, and from
//! `tokamak secret bind`.
//! Invariant: a secret without a binding to an origin is not sent there, whatever its name and its place.

use std::sync::Arc;

use base::Origin;
use ports::secrets::Error;
use store::secrets::{BindingStore, Bindings};

use crate::shipped;

/// The bindings of all secrets.
#[derive(Debug, Clone)]
pub struct SecretBindings {
    /// The table `[secrets]` of the settings.
    configured: Arc<Bindings>,
    stored: Arc<BindingStore>,
}

impl SecretBindings {
    pub fn new(configured: Bindings, stored: BindingStore) -> Self {
        Self { configured: Arc::new(configured), stored: Arc::new(stored) }
    }

    /// Returns whether the settings or a shipped catalog bind the secret to the origin. This function reads no file.
    pub fn is_fixed(&self, name: &str, origin: &Origin) -> bool {
        let in_settings = self.configured.get(name).is_some_and(|origins| origins.contains(origin));
        in_settings || shipped::SECRET_ORIGINS.iter().any(|(own, shipped)| *own == name && *shipped == origin.as_str())
    }

    /// Returns whether the secret may be sent to the origin. This function blocks, because it may read the disk.
    pub fn allows(&self, name: &str, origin: &Origin) -> Result<bool, Error> {
        if self.is_fixed(name, origin) {
            return Ok(true);
        }
        let stored = self.stored.list().map_err(|error| match error {
            store::secrets::Error::Io { .. } => Error::Unavailable(Box::new(error)),
            _ => Error::Unusable { name: name.escape_debug().to_string(), hint: error.to_string() },
        })?;
        Ok(stored.get(name).is_some_and(|origins| origins.contains(origin)))
    }

    /// Returns every binding of the settings and of `tokamak secret bind`.
    pub fn list(&self) -> Result<Bindings, store::secrets::Error> {
        let mut all = self.stored.list()?;
        for (name, origins) in self.configured.iter() {
            all.entry(name.clone()).or_default().extend(origins.iter().cloned());
        }
        Ok(all)
    }

    /// Returns whether the settings bind the secret.
    pub fn is_configured(&self, name: &str) -> bool {
        self.configured.contains_key(name)
    }

    /// Returns the bindings that commands change.
    pub fn stored(&self) -> &BindingStore {
        &self.stored
    }
}

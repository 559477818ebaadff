//! The type `SecretStore`: an encrypted file `secrets.enc` in the data folder, with a value for each tenant and name.
//!
//! Invariants:
//! - A file that cannot be decrypted is never overwritten, because the operator may still find its key or a backup.
//! - Each call sees the changes that other processes made before it.
//! - If two processes change the file at the same moment, both changes are kept.

mod bindings;
mod error;
mod file;
mod format;
mod key;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Secret, TenantId};
use ports::secrets::{NAME_RULE, is_name};

pub use bindings::{BINDINGS_FILE_NAME, BindingStore, Bindings};
pub use error::{Error, MAX_SECRET_BYTES};
pub use file::FILE_NAME;
pub use format::KeyCost;
use format::{Sealed, SecretId};
use key::FileKey;

/// The effect of [`SecretStore::set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetEffect {
    Added,
    Replaced,
}

/// The encrypted store of secrets. Its calls block: each call reads the disk, and the first call derives the key, which
/// is slow on purpose.
pub struct SecretStore {
    /// The data folder, which contains `secrets.enc`.
    data: PathBuf,
    /// The operator's passphrase. If it is `None`, a call on an existing file returns `NoKey`.
    passphrase: Option<Secret>,
    /// The cost of deriving the key of a new file.
    cost: KeyCost,
    /// The file as the last call read it. It is kept so that the key is derived only once.
    cached: Mutex<Option<Arc<OpenedFile>>>,
}

/// A decoded version of the file. The values stay encrypted until a caller asks for them.
struct OpenedFile {
    /// The bytes of the whole file. They are compared at each call, to notice a change by another process.
    bytes: Vec<u8>,
    key: Arc<FileKey>,
    entries: BTreeMap<SecretId, Sealed>,
}

impl SecretStore {
    /// Returns the store of the folder `data`. The file is first read by the next call, and created by the first `set`.
    pub fn new(data: &Path, passphrase: Option<Secret>) -> Self {
        Self::with_cost(data, passphrase, KeyCost::DEFAULT)
    }

    /// Returns the store of the folder `data` with another key cost for a new file. An existing file keeps its own
    /// cost.
    pub fn with_cost(data: &Path, passphrase: Option<Secret>, cost: KeyCost) -> Self {
        Self { data: data.to_owned(), passphrase, cost, cached: Mutex::new(None) }
    }

    /// Returns whether a passphrase is set. The passphrase is not checked.
    pub fn has_key(&self) -> bool {
        self.passphrase.is_some()
    }

    /// Decrypts every secret of every tenant. Returns the number of secrets, or `None` if the file does not exist.
    pub fn check(&self) -> Result<Option<usize>, Error> {
        let Some(opened) = self.open()? else { return Ok(None) };
        for (id, sealed) in &opened.entries {
            opened.key.open(id, sealed)?;
        }
        Ok(Some(opened.entries.len()))
    }

    /// Returns the names of a tenant's secrets in alphabetical order.
    pub fn names(&self, tenant: &TenantId) -> Result<Vec<String>, Error> {
        let opened = self.open()?;
        let ids = opened.iter().flat_map(|opened| opened.entries.keys());
        Ok(ids.filter(|id| id.tenant == tenant.as_str()).map(|id| id.name.clone()).collect())
    }

    /// Returns the value of a secret, or `None` if the secret is not set.
    pub fn get(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, Error> {
        let Some(opened) = self.open()? else { return Ok(None) };
        let id = secret_id(tenant, name);
        opened.entries.get(&id).map(|sealed| opened.key.open(&id, sealed)).transpose()
    }

    /// Sets a secret, durably.
    pub fn set(&self, tenant: &TenantId, name: &str, value: &Secret) -> Result<SetEffect, Error> {
        check_entry(name, value)?;
        let lock = file::WriteLock::acquire(&self.data)?;
        let (key, mut entries) = match self.open()? {
            Some(opened) => (Arc::clone(&opened.key), opened.entries.clone()),
            None => (Arc::new(FileKey::new(self.passphrase()?, self.cost)?), BTreeMap::new()),
        };
        let id = secret_id(tenant, name);
        let sealed = key.seal(&id, value)?;
        let previous = entries.insert(id, sealed);
        self.write(&lock, &key, &entries)?;
        Ok(if previous.is_some() { SetEffect::Replaced } else { SetEffect::Added })
    }

    /// Removes a secret, durably. Returns whether the secret was set.
    pub fn remove(&self, tenant: &TenantId, name: &str) -> Result<bool, Error> {
        // If the file does not exist, the function returns before it takes the lock, because the lock would create the
        // data folder.
        if self.open()?.is_none() {
            return Ok(false);
        }
        let lock = file::WriteLock::acquire(&self.data)?;
        // The file is read again under the lock, because another process may have changed it since the first read.
        let Some(opened) = self.open()? else { return Ok(false) };
        let mut entries = opened.entries.clone();
        if entries.remove(&secret_id(tenant, name)).is_none() {
            return Ok(false);
        }
        self.write(&lock, &opened.key, &entries)?;
        Ok(true)
    }

    /// Reads and verifies the file, and returns `None` if it does not exist. The file is read at each call, so that a
    /// change by another process is seen. The key is derived again only if the header has changed.
    fn open(&self) -> Result<Option<Arc<OpenedFile>>, Error> {
        // A panic under the lock cannot leave a half-written value, so a poisoned lock is still used.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = file::read(&self.data)? else {
            *cached = None;
            return Ok(None);
        };
        if let Some(opened) = cached.as_ref().filter(|opened| opened.bytes == bytes) {
            return Ok(Some(Arc::clone(opened)));
        }
        let parsed = format::parse(&bytes)?;
        let with_same_key = cached.as_ref().filter(|opened| opened.key.header == parsed.header);
        let key = match with_same_key {
            Some(opened) => Arc::clone(&opened.key),
            None => Arc::new(FileKey::of_file(self.passphrase()?, &parsed.header)?),
        };
        key.check_file(&bytes, &parsed)?;
        let opened = Arc::new(OpenedFile { bytes, key, entries: parsed.entries });
        *cached = Some(Arc::clone(&opened));
        Ok(Some(opened))
    }

    fn write(&self, lock: &file::WriteLock, key: &FileKey, entries: &BTreeMap<SecretId, Sealed>) -> Result<(), Error> {
        let covered = format::encode_without_seal(&key.header, entries)?;
        let seal = key.seal_file(&covered)?;
        file::replace(lock, &self.data, &format::append_seal(covered, &seal))
    }

    fn passphrase(&self) -> Result<&Secret, Error> {
        self.passphrase.as_ref().ok_or(Error::NoKey)
    }
}

fn secret_id(tenant: &TenantId, name: &str) -> SecretId {
    SecretId { tenant: tenant.as_str().to_owned(), name: name.to_owned() }
}

/// Refuses an invalid name, an empty value and a value that is too large.
fn check_entry(name: &str, value: &Secret) -> Result<(), Error> {
    let shown_name = || name.escape_debug().take(160).collect();
    let length = value.expose().len();
    if !is_name(name) {
        return Err(Error::Name { name: shown_name(), rule: NAME_RULE });
    }
    if length == 0 {
        return Err(Error::Value { name: shown_name(), rule: "the value is empty; send it on standard input" });
    }
    if length > MAX_SECRET_BYTES {
        return Err(Error::Value { name: shown_name(), rule: "the value is larger than 64 KiB" });
    }
    Ok(())
}

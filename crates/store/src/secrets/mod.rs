//! Secrets in one encrypted file of the data folder, each for one tenant and name.
//! Invariant: what cannot be opened is never written over; a change made by another process is seen by the next call; two
//! changes at once are both kept.

mod error;
mod file;
mod format;
mod key;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Secret, TenantId};
use ports::secrets::{NAME_RULE, is_name};

pub use error::{Error, MOST_SECRET_BYTES};
pub use file::NAME as FILE_NAME;
pub use format::Cost;
use format::{Place, Sealed};
use key::Key;

/// What a `set` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Replaced,
}

/// The calls block: they read the disk, and the first one derives the key, which is slow on purpose.
pub struct SecretStore {
    data: PathBuf,
    passphrase: Option<Secret>,
    cost: Cost,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// The store as it was when the file had these bytes. Values stay sealed until they are asked for.
struct Opened {
    bytes: Vec<u8>,
    key: Arc<Key>,
    entries: BTreeMap<Place, Sealed>,
}

impl SecretStore {
    /// Touches nothing: the file is made by the first `set`.
    pub fn new(data: &Path, passphrase: Option<Secret>) -> Self {
        Self::with_cost(data, passphrase, Cost::DEFAULT)
    }

    /// `cost` is for a file that does not exist yet.
    pub fn with_cost(data: &Path, passphrase: Option<Secret>, cost: Cost) -> Self {
        Self { data: data.to_owned(), passphrase, cost, opened: Mutex::new(None) }
    }

    pub fn has_key(&self) -> bool {
        self.passphrase.is_some()
    }

    /// How many secrets there are, of all tenants; none if there is no file. Every byte has been checked then.
    pub fn check(&self) -> Result<Option<usize>, Error> {
        let Some(opened) = self.open()? else { return Ok(None) };
        for (place, sealed) in &opened.entries {
            opened.key.open(place, sealed)?;
        }
        Ok(Some(opened.entries.len()))
    }

    /// In the order of names.
    pub fn names(&self, tenant: &TenantId) -> Result<Vec<String>, Error> {
        let opened = self.open()?;
        let places = opened.iter().flat_map(|opened| opened.entries.keys());
        Ok(places.filter(|(owner, _)| owner == tenant.as_str()).map(|(_, name)| name.clone()).collect())
    }

    pub fn get(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, Error> {
        let Some(opened) = self.open()? else { return Ok(None) };
        let place = place(tenant, name);
        opened.entries.get(&place).map(|sealed| opened.key.open(&place, sealed)).transpose()
    }

    pub fn set(&self, tenant: &TenantId, name: &str, value: &Secret) -> Result<Change, Error> {
        fit(name, value)?;
        let lock = file::Lock::take(&self.data)?;
        let (key, mut entries) = match self.open()? {
            Some(opened) => (Arc::clone(&opened.key), opened.entries.clone()),
            None => (Arc::new(Key::make(self.passphrase()?, self.cost)?), BTreeMap::new()),
        };
        let place = place(tenant, name);
        let sealed = key.seal(&place, value)?;
        let before = entries.insert(place, sealed);
        self.write(&lock, &key, &entries)?;
        Ok(if before.is_some() { Change::Replaced } else { Change::Added })
    }

    /// Whether it was there.
    pub fn remove(&self, tenant: &TenantId, name: &str) -> Result<bool, Error> {
        // A store that does not exist needs neither a lock nor a folder to say that nothing is in it.
        if self.open()?.is_none() {
            return Ok(false);
        }
        let lock = file::Lock::take(&self.data)?;
        let Some(opened) = self.open()? else { return Ok(false) };
        let mut entries = opened.entries.clone();
        if entries.remove(&place(tenant, name)).is_none() {
            return Ok(false);
        }
        self.write(&lock, &opened.key, &entries)?;
        Ok(true)
    }

    /// The file is read each time, so that what another process set is found; the key is derived once for each store.
    fn open(&self) -> Result<Option<Arc<Opened>>, Error> {
        // A panic while it was held left either value whole.
        let mut cached = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = file::read(&self.data)? else {
            *cached = None;
            return Ok(None);
        };
        if let Some(opened) = cached.as_ref().filter(|opened| opened.bytes == bytes) {
            return Ok(Some(Arc::clone(opened)));
        }
        let parsed = format::read(&bytes)?;
        let known = cached.as_ref().filter(|opened| opened.key.header == parsed.header);
        let key = match known {
            Some(opened) => Arc::clone(&opened.key),
            None => Arc::new(Key::derive(self.passphrase()?, &parsed.header)?),
        };
        key.check_file(&bytes, &parsed)?;
        let opened = Arc::new(Opened { bytes, key, entries: parsed.entries });
        *cached = Some(Arc::clone(&opened));
        Ok(Some(opened))
    }

    fn write(&self, lock: &file::Lock, key: &Key, entries: &BTreeMap<Place, Sealed>) -> Result<(), Error> {
        let covered = format::write(&key.header, entries)?;
        let seal = key.seal_file(&covered)?;
        file::replace(lock, &self.data, &format::finish(covered, &seal))
    }

    fn passphrase(&self) -> Result<&Secret, Error> {
        self.passphrase.as_ref().ok_or(Error::NoKey)
    }
}

fn place(tenant: &TenantId, name: &str) -> Place {
    (tenant.as_str().to_owned(), name.to_owned())
}

fn fit(name: &str, value: &Secret) -> Result<(), Error> {
    let told = || name.escape_debug().take(160).collect();
    let length = value.expose().len();
    if !is_name(name) {
        return Err(Error::Name { name: told(), rule: NAME_RULE });
    }
    if length == 0 {
        return Err(Error::Value { name: told(), rule: "it is empty; send it on standard input" });
    }
    if length > MOST_SECRET_BYTES {
        return Err(Error::Value { name: told(), rule: "it is larger than 64 KiB" });
    }
    Ok(())
}

//! API keys: finds the identity of a key, and creates, lists and revokes keys.
//! Invariants: a key is shown once, when it is made. Only its digest is stored, under its tenant. A revoked key stays stored as
//! revoked, because a server that has ever had a key must not fall back to answering without one; only `delete_all` removes it.
//! A key of a tenant that is not among the accepted ones is refused, because a deleted table would otherwise give the key every right.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Digest, Principal, Secret, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Range, Table};
use ports::{Entropy, Store};
use serde::{Deserialize, Serialize};

use crate::identity::Identity;

/// The beginning of each key. The name of the tenant follows it.
const KEY_PREFIX: &str = "tk_";
/// The size above which a text is refused before it is hashed. It comes from a client that is not authenticated yet.
const MAX_KEY_BYTES: usize = 256;
/// The fewest characters of an id that `revoke` accepts.
const MIN_ID_CHARS: usize = 6;
/// The most keys of a tenant that a list reads.
const MAX_LISTED_KEYS: usize = 10_000;
/// The most keys that one transaction deletes.
const MAX_DELETED_AT_ONCE: usize = 1_000;

/// The failure of reading or writing a stored API key. It is a fault of the storage, never of the caller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] ports::store::Error),
    /// A stored key does not read back as it was written. The text names its row.
    #[error("stored row {0} is damaged")]
    Damaged(String),
}

/// A key that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredKey {
    /// The digest of the key. The settings never hold the key itself.
    pub digest: Digest,
    /// The identity of requests that carry the key.
    pub identity: Identity,
}

/// A key at the moment it is made. The key cannot be shown again later.
#[derive(Debug)]
pub struct NewKey {
    /// The key as a client sends it.
    pub key: Secret,
    /// The digest under which the key is stored.
    pub digest: Digest,
}

impl NewKey {
    /// Draws a key of 256 random bits with the name of its tenant in front.
    pub fn draw(entropy: &dyn Entropy, tenant: &TenantId) -> Self {
        let random = [entropy.bytes(), entropy.bytes(), entropy.bytes()].concat();
        let key = Secret::new(format!("{KEY_PREFIX}{tenant}_{}", Digest::of(&random)));
        Self { digest: Digest::of(key.expose().as_bytes()), key }
    }
}

/// A stored key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The digest of the key. Its first characters are the key's id.
    pub digest: Digest,
    /// The tenant under which the key is stored.
    pub tenant: TenantId,
    /// The person or program that requests with the key act for.
    pub principal: Principal,
    pub created: Timestamp,
    /// The time of the revocation, or `None` while the key is valid.
    pub revoked: Option<Timestamp>,
}

/// The stored row of a key, under the key's digest.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeyRow {
    principal: Principal,
    created: Timestamp,
    /// The time of the revocation. The row stays, so that a server with only revoked keys still requires one.
    revoked: Option<Timestamp>,
}

/// The outcome of a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// The key was valid and is refused from the next request on.
    Revoked(StoredKey),
    /// The key had been revoked before.
    AlreadyRevoked(StoredKey),
    /// No tenant has a key with this id.
    Unknown,
    /// Several keys begin with this id.
    Ambiguous,
}

/// The keys that a server accepts: those of the settings and those in the store.
pub struct ApiKeys {
    /// The store with the keys that `tokamak token new` made.
    store: Arc<dyn Store>,
    /// The keys that the settings name.
    configured: Vec<ConfiguredKey>,
    /// The tenants whose stored keys are accepted. A stored key of any other tenant is refused.
    tenants: BTreeSet<TenantId>,
}

impl ApiKeys {
    /// Accepts the keys of the settings, and the stored keys of `tenants`: those that the settings name, or `local` if they name none.
    pub fn new(store: Arc<dyn Store>, configured: Vec<ConfiguredKey>, tenants: BTreeSet<TenantId>) -> Self {
        Self { store, configured, tenants }
    }

    /// Returns the identity of a key, or `None` for a key that is unknown, revoked, or of a tenant that is not accepted.
    pub async fn identify(&self, key: &str) -> Result<Option<Identity>, Error> {
        if key.len() > MAX_KEY_BYTES {
            return Ok(None);
        }
        let digest = Digest::of(key.as_bytes());
        // The digest is compared with every key, each in constant time, because the time of an early stop would show how far a
        // guess got.
        let mut identity = None;
        for configured in &self.configured {
            if configured.digest.constant_time_eq(&digest) {
                identity = Some(configured.identity.clone());
            }
        }
        if identity.is_some() {
            return Ok(identity);
        }
        // The tenant inside the key is only a claim, and the stored row under the key's digest proves it. A lookup by digest may
        // take a time that depends on the digest, which tells nothing about any key.
        let tenant = key.strip_prefix(KEY_PREFIX).and_then(|rest| rest.rsplit_once('_')).map(|(tenant, _)| tenant);
        let Some(tenant) = tenant.and_then(|tenant| TenantId::parse(tenant).ok()) else { return Ok(None) };
        let row_key = Key::new(&tenant, Table::ApiKey, digest.to_string());
        let Some(stored) = self.store.get(&row_key).await? else { return Ok(None) };
        let row = read_row(Table::ApiKey.name(), &stored.value)?;
        if row.revoked.is_none() && !self.tenants.contains(&tenant) {
            tracing::warn!(%tenant, "a key was refused, because the settings do not name its tenant; add a table [tenants.NAME], which may be empty, or revoke the key");
            return Ok(None);
        }
        Ok(row.revoked.is_none().then_some(Identity { tenant, principal: row.principal }))
    }
}

/// Stores a new key. Requests that carry the key have this identity from then on.
pub async fn store_key(store: &dyn Store, key: &NewKey, identity: &Identity, now: Timestamp) -> Result<(), Error> {
    let row = KeyRow { principal: identity.principal.clone(), created: now, revoked: None };
    let row_key = Key::new(&identity.tenant, Table::ApiKey, key.digest.to_string());
    Ok(store.commit(Batch::default().put(row_key, write_row(&row), Expect::Absent)).await?)
}

/// Returns the tenants that have a stored key, revoked keys included, in the order of their names.
pub async fn tenants_with_keys(store: &dyn Store) -> Result<Vec<TenantId>, Error> {
    let mut with_keys = Vec::new();
    for tenant in store.tenants().await? {
        if !store.scan(&range_of(&tenant, 1)).await?.is_empty() {
            with_keys.push(tenant);
        }
    }
    Ok(with_keys)
}

/// Returns whether any tenant has a stored key, a revoked one included.
pub async fn any(store: &dyn Store) -> Result<bool, Error> {
    for tenant in store.tenants().await? {
        if !store.scan(&range_of(&tenant, 1)).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes every stored key of every tenant, and returns their number. A server that starts afterwards may answer without a key.
pub async fn delete_all(store: &dyn Store) -> Result<usize, Error> {
    let mut deleted = 0;
    for tenant in store.tenants().await? {
        loop {
            let rows = store.scan(&range_of(&tenant, MAX_DELETED_AT_ONCE)).await?;
            if rows.is_empty() {
                break;
            }
            deleted += rows.len();
            let keys = rows.into_iter().map(|(id, _)| Key::new(&tenant, Table::ApiKey, id));
            let batch = keys.fold(Batch::default(), |batch, key| batch.delete(key, Expect::Any));
            store.commit(batch).await?;
        }
    }
    Ok(deleted)
}

fn range_of(tenant: &TenantId, limit: usize) -> Range {
    Range { tenant: tenant.clone(), table: Table::ApiKey, prefix: String::new(), after: None, limit }
}

/// Returns the keys of a tenant, the oldest first and revoked ones included.
pub async fn list(store: &dyn Store, tenant: &TenantId) -> Result<Vec<StoredKey>, Error> {
    let range = range_of(tenant, MAX_LISTED_KEYS);
    let mut keys = Vec::new();
    for (id, row) in store.scan(&range).await? {
        let damaged = || Error::Damaged(format!("{}/{id}", Table::ApiKey.name()));
        let digest = Digest::parse(&id).map_err(|_| damaged())?;
        let KeyRow { principal, created, revoked } = read_row(Table::ApiKey.name(), &row.value)?;
        keys.push(StoredKey { digest, tenant: tenant.clone(), principal, created, revoked });
    }
    keys.sort_by_key(|key| (key.created, key.digest));
    Ok(keys)
}

/// Revokes the key of these tenants whose digest begins with `id`.
pub async fn revoke(store: &dyn Store, tenants: &[TenantId], id: &str, now: Timestamp) -> Result<Revocation, Error> {
    if id.len() < MIN_ID_CHARS {
        return Ok(Revocation::Unknown);
    }
    let mut matching = Vec::new();
    for tenant in tenants {
        matching.extend(list(store, tenant).await?.into_iter().filter(|key| key.digest.to_string().starts_with(id)));
    }
    let mut key = match (matching.pop(), matching.is_empty()) {
        (None, _) => return Ok(Revocation::Unknown),
        (Some(_), false) => return Ok(Revocation::Ambiguous),
        (Some(key), true) if key.revoked.is_some() => return Ok(Revocation::AlreadyRevoked(key)),
        (Some(key), true) => key,
    };
    key.revoked = Some(now);
    let row = KeyRow { principal: key.principal.clone(), created: key.created, revoked: key.revoked };
    let row_key = Key::new(&key.tenant, Table::ApiKey, key.digest.to_string());
    // Two revocations at once write the same fact, so the row's version is not compared.
    store.commit(Batch::default().put(row_key, write_row(&row), Expect::Any)).await?;
    Ok(Revocation::Revoked(key))
}

fn write_row(row: &KeyRow) -> Vec<u8> {
    // A row is plain data with string keys, so it can always be serialised.
    serde_json::to_vec(row).unwrap_or_default()
}

fn read_row(name: &str, bytes: &[u8]) -> Result<KeyRow, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(row = name, %error, "a stored API key does not read back");
        Error::Damaged(name.to_owned())
    })
}

//! API keys: who a key names, and the keys there are.
//! Invariant: a key is shown once, when it is made; what is kept is its digest, under its tenant. A key that was revoked is kept
//! as revoked, so that taking the last one away never opens a server.

use base::{Digest, Principal, Secret, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Range, Table};
use ports::{Entropy, Store};
use serde::{Deserialize, Serialize};

use crate::caller::Identity;
use crate::error::Error;
use crate::rows;

const MARK: &str = "tk_";
/// Longer than any key.
const MOST_BYTES: usize = 256;
/// Characters of an id that name a key well enough to revoke it.
const FEWEST_OF_ID: usize = 6;
const MOST_KEYS: usize = 10_000;

/// A key that the settings name: its digest, and who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredKey {
    pub digest: Digest,
    pub identity: Identity,
}

/// A key as it is made. Nobody can show it again.
#[derive(Debug)]
pub struct NewKey {
    pub key: Secret,
    pub digest: Digest,
}

impl NewKey {
    /// 256 bits that nobody can guess, with the tenant it is for in front.
    pub fn draw(entropy: &dyn Entropy, tenant: &TenantId) -> Self {
        let drawn = [entropy.bytes(), entropy.bytes(), entropy.bytes()].concat();
        let key = Secret::new(format!("{MARK}{tenant}_{}", Digest::of(&drawn)));
        Self { digest: Digest::of(key.expose().as_bytes()), key }
    }
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Of the key; its first characters are enough to name it.
    pub digest: Digest,
    pub tenant: TenantId,
    pub principal: Principal,
    pub created: Timestamp,
    pub revoked: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeyRow {
    principal: Principal,
    created: Timestamp,
    revoked: Option<Timestamp>,
}

/// What a revocation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    Now(KnownKey),
    Before(KnownKey),
    /// None of the tenants has a key with such an id.
    Unknown,
    /// Several have.
    Ambiguous,
}

/// Keeps a key; whoever shows it is `identity` from now on.
pub async fn keep(store: &dyn Store, key: &NewKey, identity: &Identity, now: Timestamp) -> Result<(), Error> {
    let row = KeyRow { principal: identity.principal.clone(), created: now, revoked: None };
    let at = Key::new(&identity.tenant, Table::ApiKey, key.digest.to_string());
    Ok(store.commit(Batch::default().put(at, rows::write(&row), Expect::Absent)).await?)
}

/// The keys of a tenant, revoked ones too, oldest first.
pub async fn list(store: &dyn Store, tenant: &TenantId) -> Result<Vec<KnownKey>, Error> {
    let range =
        Range { tenant: tenant.clone(), table: Table::ApiKey, prefix: String::new(), after: None, limit: MOST_KEYS };
    let mut known = Vec::new();
    for (id, row) in store.scan(&range).await? {
        let damaged = || Error::Damaged(format!("{}/{id}", Table::ApiKey.name()));
        let digest = Digest::parse(&id).map_err(|_| damaged())?;
        let KeyRow { principal, created, revoked } = rows::read(Table::ApiKey.name(), &row.value)?;
        known.push(KnownKey { digest, tenant: tenant.clone(), principal, created, revoked });
    }
    known.sort_by_key(|key| (key.created, key.digest));
    Ok(known)
}

/// By the first characters of its digest, among the keys of these tenants. It is refused from the next request on.
pub async fn revoke(store: &dyn Store, tenants: &[TenantId], id: &str, now: Timestamp) -> Result<Revoked, Error> {
    if id.len() < FEWEST_OF_ID {
        return Ok(Revoked::Unknown);
    }
    let mut found = Vec::new();
    for tenant in tenants {
        found.extend(list(store, tenant).await?.into_iter().filter(|key| key.digest.to_string().starts_with(id)));
    }
    let mut key = match (found.pop(), found.is_empty()) {
        (None, _) => return Ok(Revoked::Unknown),
        (Some(_), false) => return Ok(Revoked::Ambiguous),
        (Some(key), true) if key.revoked.is_some() => return Ok(Revoked::Before(key)),
        (Some(key), true) => key,
    };
    key.revoked = Some(now);
    let row = KeyRow { principal: key.principal.clone(), created: key.created, revoked: key.revoked };
    let at = Key::new(&key.tenant, Table::ApiKey, key.digest.to_string());
    store.commit(Batch::default().put(at, rows::write(&row), Expect::Any)).await?;
    Ok(Revoked::Now(key))
}

/// Whom a key names; `None` for one that is not ours, or not any more.
pub(crate) async fn who(
    store: &dyn Store,
    configured: &[ConfiguredKey],
    shown: &str,
) -> Result<Option<Identity>, Error> {
    if shown.len() > MOST_BYTES {
        return Ok(None);
    }
    let digest = Digest::of(shown.as_bytes());
    // All are compared, each in constant time: how long it takes tells nothing.
    let mut named = None;
    for key in configured {
        if key.digest.same(&digest) {
            named = Some(key.identity.clone());
        }
    }
    if named.is_some() {
        return Ok(named);
    }
    // The tenant in front of it is a claim; that the row is there proves it. Rows are looked up by digest, so what can be
    // measured is where a digest differs, which leads to no key.
    let claimed = shown.strip_prefix(MARK).and_then(|rest| rest.rsplit_once('_')).map(|(tenant, _)| tenant);
    let Some(tenant) = claimed.and_then(|tenant| TenantId::parse(tenant).ok()) else { return Ok(None) };
    let key = Key::new(&tenant, Table::ApiKey, digest.to_string());
    let Some(found) = store.get(&key).await? else { return Ok(None) };
    let row: KeyRow = rows::read(Table::ApiKey.name(), &found.value)?;
    Ok(row.revoked.is_none().then_some(Identity { tenant, principal: row.principal }))
}

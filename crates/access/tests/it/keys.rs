//! API keys against the store: the identity of a key, its stored row, and its revocation.

use std::collections::BTreeSet;
use std::sync::Arc;

use access::keys::{self, NewKey, Revocation};
use access::{ApiKeys, ConfiguredKey, Identity};
use base::{Digest, Principal, TenantId, Timestamp};
use testkit::memory::{CountingEntropy, MemoryStore};

const NOW: Timestamp = Timestamp(1_000);

fn acme() -> Identity {
    Identity { tenant: TenantId::parse("ac_me-1").unwrap(), principal: Principal::parse("ada").unwrap() }
}

#[tokio::test]
async fn a_key_stands_for_its_tenant_and_principal_until_it_is_revoked() {
    let store = Arc::new(MemoryStore::new());
    let identity = acme();
    let api_keys = ApiKeys::new(store.clone(), Vec::new(), BTreeSet::from([identity.tenant.clone()]));
    let key = NewKey::draw(&CountingEntropy::new(), &identity.tenant);
    keys::store_key(store.as_ref(), &key, &identity, NOW).await.unwrap();
    let text = key.key.expose().to_owned();
    assert_eq!(api_keys.identify(&text).await.unwrap(), Some(identity.clone()));
    for wrong in [text.to_uppercase(), text.replace("ac_me-1", "local"), format!("{text}0"), String::new()] {
        assert_eq!(api_keys.identify(&wrong).await.unwrap(), None, "{wrong}");
    }
    assert_eq!(api_keys.identify(&"x".repeat(100_000)).await.unwrap(), None);
    let tenants = [TenantId::local(), identity.tenant.clone()];
    let id = key.digest.short();
    let revoke = async |id: &str| keys::revoke(store.as_ref(), &tenants, id, NOW).await.unwrap();
    assert_eq!(revoke("").await, Revocation::Unknown, "an empty id names no key");
    assert!(matches!(revoke(&id).await, Revocation::Revoked(stored) if stored.principal == identity.principal));
    assert!(matches!(revoke(&id).await, Revocation::AlreadyRevoked(_)));
    assert_eq!(api_keys.identify(&text).await.unwrap(), None);
    let listed = keys::list(store.as_ref(), &identity.tenant).await.unwrap();
    assert!(listed.len() == 1 && listed[0].revoked == Some(NOW), "a revoked key stays stored as revoked");
}

#[tokio::test]
async fn the_store_never_holds_a_key_and_no_two_keys_are_equal() {
    let store = MemoryStore::new();
    let entropy = CountingEntropy::new();
    let identity = acme();
    let mut drawn = BTreeSet::new();
    for _ in 0..20 {
        let key = NewKey::draw(&entropy, &identity.tenant);
        keys::store_key(&store, &key, &identity, NOW).await.unwrap();
        assert!(drawn.insert(key.key.expose().to_owned()));
        let secret = key.key.expose().rsplit_once('_').unwrap().1.to_owned();
        assert_eq!(secret.len(), 64);
        for (row_key, row) in store.rows() {
            assert!(!format!("{row_key:?} {}", String::from_utf8_lossy(&row.value)).contains(&secret));
        }
        assert!(!format!("{key:?}").contains(&secret));
    }
}

#[tokio::test]
async fn a_key_of_the_settings_is_accepted_like_a_stored_key() {
    let key = NewKey::draw(&CountingEntropy::new(), &acme().tenant);
    let configured = ConfiguredKey { digest: key.digest, identity: acme() };
    let other = ConfiguredKey { digest: Digest::of(b"other"), identity: Identity::local() };
    let api_keys = ApiKeys::new(Arc::new(MemoryStore::new()), vec![configured, other], BTreeSet::new());
    assert_eq!(api_keys.identify(key.key.expose()).await.unwrap(), Some(acme()));
    assert_eq!(api_keys.identify("other").await.unwrap(), Some(Identity::local()));
    assert_eq!(api_keys.identify("another").await.unwrap(), None);
}

#[tokio::test]
async fn a_key_of_a_tenant_that_the_settings_do_not_name_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let key = NewKey::draw(&CountingEntropy::new(), &acme().tenant);
    keys::store_key(store.as_ref(), &key, &acme(), NOW).await.unwrap();
    let identify = async |named: &[&str]| {
        let named = named.iter().map(|name| TenantId::parse(name).unwrap()).collect();
        ApiKeys::new(store.clone(), Vec::new(), named).identify(key.key.expose()).await.unwrap()
    };
    assert_eq!(identify(&["other", "ac_me-1"]).await, Some(acme()));
    assert_eq!(identify(&["other", "local"]).await, None);
    assert_eq!(identify(&[]).await, None);
}

#[tokio::test]
async fn a_key_of_local_is_refused_like_any_other_if_local_is_not_named() {
    let store = Arc::new(MemoryStore::new());
    let local = Identity { tenant: TenantId::local(), ..acme() };
    let key = NewKey::draw(&CountingEntropy::new(), &local.tenant);
    keys::store_key(store.as_ref(), &key, &local, NOW).await.unwrap();
    let identify = async |named: TenantId| {
        let named = BTreeSet::from([named]);
        ApiKeys::new(store.clone(), Vec::new(), named).identify(key.key.expose()).await.unwrap()
    };
    assert_eq!(identify(TenantId::local()).await, Some(local.clone()));
    assert_eq!(identify(acme().tenant).await, None);
}

#[tokio::test]
async fn only_deleting_the_keys_makes_a_store_without_keys() {
    let store = MemoryStore::new();
    assert!(!keys::any(&store).await.unwrap());
    for tenant in ["a", "b"] {
        let identity = Identity { tenant: TenantId::parse(tenant).unwrap(), ..acme() };
        for entropy in [CountingEntropy::new(), CountingEntropy::new()] {
            let key = NewKey::draw(&entropy, &identity.tenant);
            let _ = keys::store_key(&store, &key, &identity, NOW).await;
        }
    }
    let tenants = keys::tenants_with_keys(&store).await.unwrap();
    assert_eq!(tenants.iter().map(TenantId::as_str).collect::<Vec<_>>(), ["a", "b"]);
    for tenant in &tenants {
        for key in keys::list(&store, tenant).await.unwrap() {
            keys::revoke(&store, &tenants, &key.digest.to_string(), NOW).await.unwrap();
        }
    }
    assert!(keys::any(&store).await.unwrap(), "a revoked key still closes the doors");
    assert_eq!(keys::delete_all(&store).await.unwrap(), 2);
    assert!(!keys::any(&store).await.unwrap() && keys::tenants_with_keys(&store).await.unwrap().is_empty());
}

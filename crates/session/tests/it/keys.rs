//! API keys against the storage: whom a key names, that only its digest is kept, and that it ends when it is told to.

use base::{Digest, Principal, TenantId, Timestamp};
use session::Identity;
use session::keys::{self, ConfiguredKey, NewKey, Revoked};

use crate::house::{self, House};

const NOW: Timestamp = Timestamp(1_000);

fn acme() -> Identity {
    Identity { tenant: TenantId::parse("ac_me-1").unwrap(), principal: Principal::parse("ada").unwrap() }
}

#[tokio::test]
async fn a_key_names_its_tenant_and_principal_until_it_is_revoked() {
    let house = House::new();
    let (service, identity) = (house.service(), acme());
    let key = NewKey::draw(house.entropy.as_ref(), &identity.tenant);
    keys::keep(house.store.as_ref(), &key, &identity, NOW).await.unwrap();
    let shown = key.key.expose().to_owned();
    assert_eq!(service.who(&shown).await.unwrap(), Some(identity.clone()));
    for wrong in [shown.to_uppercase(), shown.replace("ac_me-1", "local"), format!("{shown}0"), String::new()] {
        assert_eq!(service.who(&wrong).await.unwrap(), None, "{wrong}");
    }
    assert_eq!(service.who(&"x".repeat(100_000)).await.unwrap(), None);
    let tenants = [TenantId::local(), identity.tenant.clone()];
    let id = key.digest.short();
    let revoke = async |id: &str| keys::revoke(house.store.as_ref(), &tenants, id, NOW).await.unwrap();
    assert_eq!(revoke("").await, Revoked::Unknown, "nothing names no key");
    assert!(matches!(revoke(&id).await, Revoked::Now(known) if known.principal == identity.principal));
    assert!(matches!(revoke(&id).await, Revoked::Before(_)));
    assert_eq!(service.who(&shown).await.unwrap(), None);
    let listed = keys::list(house.store.as_ref(), &identity.tenant).await.unwrap();
    assert!(listed.len() == 1 && listed[0].revoked == Some(NOW), "a revoked key is kept as revoked");
}

#[tokio::test]
async fn the_storage_has_no_key_and_no_two_are_alike() {
    let house = House::new();
    let identity = acme();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let key = NewKey::draw(house.entropy.as_ref(), &identity.tenant);
        keys::keep(house.store.as_ref(), &key, &identity, NOW).await.unwrap();
        assert!(seen.insert(key.key.expose().to_owned()));
        let secret = key.key.expose().rsplit_once('_').unwrap().1.to_owned();
        assert_eq!(secret.len(), 64);
        for (at, row) in house.store.rows() {
            assert!(!format!("{at:?} {}", String::from_utf8_lossy(&row.value)).contains(&secret));
        }
        assert!(!format!("{key:?}").contains(&secret));
    }
}

#[tokio::test]
async fn a_key_of_the_settings_is_as_good_as_a_kept_one() {
    let house = House::new();
    let (key, identity) = (NewKey::draw(house.entropy.as_ref(), &acme().tenant), acme());
    let configured = ConfiguredKey { digest: key.digest, identity: identity.clone() };
    let other = ConfiguredKey { digest: Digest::of(b"other"), identity: Identity::local() };
    let registry = catalog::Registry::new([house::catalog()]).unwrap();
    let service =
        session::Service::new(house.ports(), registry, base::Limits::default()).with_keys(vec![configured, other]);
    assert_eq!(service.who(key.key.expose()).await.unwrap(), Some(identity));
    assert_eq!(service.who("other").await.unwrap(), Some(Identity::local()));
    assert_eq!(service.who("another").await.unwrap(), None);
}

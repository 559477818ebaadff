//! `[tenants.NAME]` of the settings: what a tenant may use, how much, and who speaks for it.
//! Invariant: a name in a list that matches nothing is said at the start, with the one that was meant; a list never allows by
//! mistake.

use std::collections::BTreeMap;

use access::Identity;
use access::keys::ConfiguredKey;
use base::{Digest, Principal, TenantId, similar_names};
use catalog::{Permissions, Registry};
use serde::Deserialize;

use crate::failure::Failure;

/// Of a key that names nobody.
pub const NOBODY: &str = "default";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantSettings {
    /// Ids of catalogs; `*` stands for any characters. All when left out.
    catalogs: Option<Vec<String>>,
    /// `catalog:capability`, or the name alone for every catalog's. All when left out.
    capabilities: Option<Vec<String>>,
    /// Nothing that changes something.
    read_only: bool,
    /// HTTP requests and MCP messages; any number when left out.
    calls_per_minute: Option<u32>,
    /// What its heaps may take in storage, where that is not what `[js]` says.
    heaps_mb: Option<u64>,
    keys: Vec<KeySetting>,
}

/// A key that `tokamak token new --print` made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeySetting {
    sha256: Digest,
    #[serde(default)]
    principal: Option<Principal>,
}

pub type TenantsSettings = BTreeMap<TenantId, TenantSettings>;

/// What each may use.
pub fn allowed(tenants: &TenantsSettings) -> BTreeMap<TenantId, Permissions> {
    tenants.iter().map(|(tenant, settings)| (tenant.clone(), settings.allow())).collect()
}

/// The keys that the settings name.
pub fn keys(tenants: &TenantsSettings) -> Vec<ConfiguredKey> {
    let of = |(tenant, settings): (&TenantId, &TenantSettings)| {
        let tenant = tenant.clone();
        settings.keys.clone().into_iter().map(move |key| {
            let identity = Identity { tenant: tenant.clone(), principal: key.principal.unwrap_or_else(nobody) };
            ConfiguredKey { digest: key.sha256, identity }
        })
    };
    tenants.iter().flat_map(of).collect()
}

pub fn calls_per_minute(tenants: &TenantsSettings) -> BTreeMap<TenantId, u32> {
    tenants.iter().filter_map(|(tenant, settings)| Some((tenant.clone(), settings.calls_per_minute?))).collect()
}

pub fn heaps_mb(tenants: &TenantsSettings) -> BTreeMap<TenantId, u64> {
    tenants.iter().filter_map(|(tenant, settings)| Some((tenant.clone(), settings.heaps_mb?))).collect()
}

pub fn nobody() -> Principal {
    // Letters only, so it is one.
    Principal::parse(NOBODY).unwrap_or_else(|_| Principal::local())
}

/// Those that the settings name, and the one that needs no naming.
pub fn all(tenants: &TenantsSettings) -> Vec<TenantId> {
    let local = Some(TenantId::local()).filter(|local| !tenants.contains_key(local));
    tenants.keys().cloned().chain(local).collect()
}

/// A tenant that the settings name, or the one that needs no naming.
pub fn named(tenants: &TenantsSettings, name: &str) -> Result<TenantId, Failure> {
    let known = all(tenants);
    let found = known.iter().find(|tenant| tenant.as_str() == name).cloned();
    found.ok_or_else(|| Failure::NoTenant {
        name: base::printable(name, 80),
        near: similar_names(name, known.iter().map(TenantId::as_str)),
    })
}

/// What a tenant may use; everything, where none is named.
pub fn allow(tenants: &TenantsSettings, name: Option<&str>) -> Result<Permissions, Failure> {
    let Some(name) = name else { return Ok(Permissions::default()) };
    let tenant = named(tenants, name)?;
    Ok(tenants.get(&tenant).map(TenantSettings::allow).unwrap_or_default())
}

/// Two tenants with one key would be one of them by chance; a rate of nothing lets nobody in.
pub fn check(tenants: &TenantsSettings) -> Result<(), Failure> {
    if let Some(tenant) = tenants.iter().find(|(_, settings)| settings.calls_per_minute == Some(0)).map(|(t, _)| t) {
        return Err(Failure::Tenant {
            tenant: tenant.clone(),
            what: "`calls_per_minute` is 0; leave it out for any number",
        });
    }
    let mut seen = BTreeMap::new();
    for key in keys(tenants) {
        if seen.insert(key.digest, ()).is_some() {
            return Err(Failure::Tenant { tenant: key.identity.tenant, what: "one of `keys` stands there twice" });
        }
    }
    Ok(())
}

/// One line for each entry of a list that matches nothing of what is offered.
pub fn idle(tenants: &TenantsSettings, registry: &Registry) -> Vec<String> {
    let mut lines = Vec::new();
    for (tenant, settings) in tenants {
        for pattern in settings.catalogs.iter().flatten() {
            let only = Permissions::new(Some(&[pattern]), None, false);
            if !registry.iter().any(|catalog| only.view(catalog).is_some()) {
                let meant = meant(registry, pattern);
                lines.push(format!(
                    "[tenants.{tenant}] catalogs: `{}` is no catalog here{meant}",
                    base::printable(pattern, 80)
                ));
            }
        }
        for pattern in settings.capabilities.iter().flatten() {
            let only = Permissions::new(None, Some(&[pattern]), false);
            if !registry.iter().any(|catalog| only.view(catalog).is_some()) {
                let names = registry.iter().flat_map(|c| c.capabilities.keys().map(|name| format!("{}:{name}", c.id)));
                let names: Vec<String> = names.collect();
                let near = similar_names(pattern, names.iter().map(String::as_str));
                let meant = near.first().map(|name| format!("; perhaps `{name}`")).unwrap_or_default();
                lines.push(format!(
                    "[tenants.{tenant}] capabilities: `{}` is none here{meant}",
                    base::printable(pattern, 80)
                ));
            }
        }
    }
    lines
}

/// An alias leads to the id that it stands for; a list takes ids only.
fn meant(registry: &Registry, pattern: &str) -> String {
    let by_name = registry.get(pattern).or_else(|| registry.get(&pattern.to_lowercase())).map(|c| c.id.to_string());
    let nearest = || similar_names(pattern, registry.iter().map(|c| c.id.as_str())).into_iter().next();
    by_name.or_else(nearest).map(|id| format!("; perhaps `{id}`")).unwrap_or_default()
}

impl TenantSettings {
    pub fn allow(&self) -> Permissions {
        let (catalogs, capabilities) = (texts(self.catalogs.as_deref()), texts(self.capabilities.as_deref()));
        Permissions::new(catalogs.as_deref(), capabilities.as_deref(), self.read_only)
    }
}

fn texts(list: Option<&[String]>) -> Option<Vec<&str>> {
    list.map(|list| list.iter().map(String::as_str).collect())
}

#[cfg(test)]
mod tests {
    // why: a failed expectation is the test's own failure.
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn settings(text: &str) -> TenantsSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_name_that_matches_nothing_is_said_with_the_one_that_was_meant() {
        let registry = Registry::new([crate::shipped::demo().unwrap()]).unwrap();
        let text =
            "[a]\ncatalogs = [\"DEMO\", \"de*\", \"tracker\"]\ncapabilities = [\"demo:ticket_lst\", \"ticket_*\"]\n";
        let lines = idle(&settings(text), &registry);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "[tenants.a] catalogs: `DEMO` is no catalog here; perhaps `demo`");
        assert_eq!(lines[2], "[tenants.a] capabilities: `demo:ticket_lst` is none here; perhaps `demo:ticket_list`");
        assert!(idle(&settings("[a]\ncatalogs = [\"*\"]\n"), &registry).is_empty());
    }

    #[test]
    fn a_key_names_one_tenant_only() {
        let key = format!("{{sha256 = \"{}\"}}", Digest::of(b"x"));
        assert!(check(&settings(&format!("[a]\nkeys = [{key}]\n"))).is_ok());
        assert!(check(&settings(&format!("[a]\nkeys = [{key}]\n[b]\nkeys = [{key}]\n"))).is_err());
        assert!(check(&settings("[a]\ncalls_per_minute = 0\n")).is_err());
    }

    #[test]
    fn tenants_are_those_of_the_settings() {
        let known = settings("[acme]\n");
        assert_eq!(named(&known, "acme").unwrap().as_str(), "acme");
        assert_eq!(named(&known, "local").unwrap(), TenantId::local());
        assert!(named(&known, "acne").unwrap_err().to_string().contains("acme"));
    }
}

//! The tables `[tenants.NAME]` of the settings: the catalogs and capabilities that a tenant may use, its limits and its API keys.
//! Invariant: an entry that matches no catalog or capability allows nothing, and is reported at the start with a similar name.

use std::collections::{BTreeMap, BTreeSet};

use access::Identity;
use access::keys::ConfiguredKey;
use base::{Digest, Principal, TenantId, similar_names};
use catalog::{Permissions, Registry};
use ports::Store;
use serde::Deserialize;

use crate::failure::Failure;

/// The name of the principal of an API key that has no principal.
const DEFAULT_PRINCIPAL: &str = "default";

/// One table `[tenants.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantSettings {
    /// The ids of the catalogs that the tenant may use. `*` in an id matches any characters. `None` allows all catalogs.
    catalogs: Option<Vec<String>>,
    /// The capabilities that the tenant may use: `catalog:capability`, or `capability` for every catalog. `None` allows all.
    capabilities: Option<Vec<String>>,
    /// Whether the tenant may use only reads.
    read_only: bool,
    /// The number of HTTP requests and MCP messages that the tenant may send in a minute. `None` allows any number.
    calls_per_minute: Option<u32>,
    /// The storage that the tenant's heaps may use. `None` means the limit of the table `[js]`.
    heaps_mb: Option<u64>,
    /// The API keys that are in the settings. Keys that `tokamak token new` stored are in the store.
    keys: Vec<KeySetting>,
}

/// An API key in the settings, as `tokamak token new --print` prints it. The settings have only the digest of the key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeySetting {
    sha256: Digest,
    #[serde(default)]
    principal: Option<Principal>,
}

pub type TenantsSettings = BTreeMap<TenantId, TenantSettings>;

/// Returns the permissions of each tenant.
pub fn permissions_by_tenant(tenants: &TenantsSettings) -> BTreeMap<TenantId, Permissions> {
    tenants.iter().map(|(tenant, settings)| (tenant.clone(), settings.permissions())).collect()
}

/// Returns the API keys that are in the settings.
pub fn configured_keys(tenants: &TenantsSettings) -> Vec<ConfiguredKey> {
    let keys_of = |(tenant, settings): (&TenantId, &TenantSettings)| {
        let tenant = tenant.clone();
        settings.keys.clone().into_iter().map(move |key| {
            let identity =
                Identity { tenant: tenant.clone(), principal: key.principal.unwrap_or_else(default_principal) };
            ConfiguredKey { digest: key.sha256, identity }
        })
    };
    tenants.iter().flat_map(keys_of).collect()
}

/// Returns the calls per minute of the tenants that have such a limit.
pub fn calls_per_minute(tenants: &TenantsSettings) -> BTreeMap<TenantId, u32> {
    tenants.iter().filter_map(|(tenant, settings)| Some((tenant.clone(), settings.calls_per_minute?))).collect()
}

/// Returns the heap storage of the tenants that have `heaps_mb` in their table.
pub fn heap_limits_mb(tenants: &TenantsSettings) -> BTreeMap<TenantId, u64> {
    tenants.iter().filter_map(|(tenant, settings)| Some((tenant.clone(), settings.heaps_mb?))).collect()
}

/// Returns the principal of an API key that has no principal.
pub fn default_principal() -> Principal {
    // `DEFAULT_PRINCIPAL` has only letters, so parsing it always succeeds.
    Principal::parse(DEFAULT_PRINCIPAL).unwrap_or_else(|_| Principal::local())
}

/// Returns the tenants whose keys are accepted: those that have a table in the settings, and `local` if no tenant has one. A person alone
/// needs no settings to use a key.
pub fn named_tenants(tenants: &TenantsSettings) -> BTreeSet<TenantId> {
    let alone = tenants.is_empty().then(TenantId::local);
    tenants.keys().cloned().chain(alone).collect()
}

/// Returns whether the settings alone say that requests need a key: they have a key, or a tenant that is reached only with one. A lost
/// database must not open a server whose keys were stored in it.
pub fn need_keys(tenants: &TenantsSettings) -> bool {
    let local = TenantId::local();
    tenants.iter().any(|(tenant, settings)| *tenant != local || !settings.keys.is_empty())
}

/// Finds a tenant whose keys are accepted, so that a key can be made for it.
pub fn find_named_tenant(tenants: &TenantsSettings, name: &str) -> Result<TenantId, Failure> {
    let named = named_tenants(tenants);
    let tenant = named.iter().find(|tenant| tenant.as_str() == name).cloned();
    tenant.ok_or_else(|| Failure::NoTenant {
        name: base::printable(name, 80),
        near: similar_names(name, named.iter().map(TenantId::as_str)),
    })
}

/// Returns the tenants that have valid stored keys which are refused, because `named_tenants` does not contain the tenant.
pub async fn unnamed_tenants_with_keys(
    tenants: &TenantsSettings,
    store: &dyn Store,
) -> Result<Vec<TenantId>, access::Error> {
    let accepted = named_tenants(tenants);
    let mut unnamed = Vec::new();
    for tenant in access::keys::tenants_with_keys(store).await? {
        if !accepted.contains(&tenant)
            && access::keys::list(store, &tenant).await?.iter().any(|key| key.revoked.is_none())
        {
            unnamed.push(tenant);
        }
    }
    Ok(unnamed)
}

/// Returns the sentence about the refused keys of a tenant that the settings do not name.
pub fn unnamed_tenant_problem(tenant: &TenantId) -> String {
    format!(
        "the settings do not name the tenant `{tenant}`, so its keys are refused; add a table [tenants.{tenant}], which may be empty, or revoke the keys"
    )
}

/// Returns the tenants of the settings and the tenant `local`, which always exists.
pub fn all_tenants(tenants: &TenantsSettings) -> Vec<TenantId> {
    let local = Some(TenantId::local()).filter(|local| !tenants.contains_key(local));
    tenants.keys().cloned().chain(local).collect()
}

/// Finds a tenant of the settings by its name.
pub fn find_tenant(tenants: &TenantsSettings, name: &str) -> Result<TenantId, Failure> {
    let known = all_tenants(tenants);
    let tenant = known.iter().find(|tenant| tenant.as_str() == name).cloned();
    tenant.ok_or_else(|| Failure::NoTenant {
        name: base::printable(name, 80),
        near: similar_names(name, known.iter().map(TenantId::as_str)),
    })
}

/// Returns the permissions of the tenant with this name. Without a name, everything is allowed.
pub fn permissions_of(tenants: &TenantsSettings, name: Option<&str>) -> Result<Permissions, Failure> {
    let Some(name) = name else { return Ok(Permissions::default()) };
    let tenant = find_tenant(tenants, name)?;
    Ok(tenants.get(&tenant).map(TenantSettings::permissions).unwrap_or_default())
}

/// Refuses an API key that is listed twice, because the order would decide its tenant, and a limit of zero calls per minute.
pub fn check_tenants(tenants: &TenantsSettings) -> Result<(), Failure> {
    if let Some(tenant) = tenants.iter().find(|(_, settings)| settings.calls_per_minute == Some(0)).map(|(t, _)| t) {
        return Err(Failure::Tenant {
            tenant: tenant.clone(),
            problem: "`calls_per_minute` is 0, so no call is allowed; remove this setting to allow any number of calls",
        });
    }
    let mut digests = BTreeSet::new();
    for key in configured_keys(tenants) {
        if !digests.insert(key.digest) {
            let problem = "one entry of `keys` is in the settings twice; remove one, because a key belongs to one tenant and one principal";
            return Err(Failure::Tenant { tenant: key.identity.tenant, problem });
        }
    }
    Ok(())
}

/// Returns a line for each entry that matches no offered catalog or capability.
pub fn unmatched_entries(tenants: &TenantsSettings, registry: &Registry) -> Vec<String> {
    let mut lines = Vec::new();
    for (tenant, settings) in tenants {
        for pattern in settings.catalogs.iter().flatten() {
            let only = Permissions::new(Some(&[pattern]), None, false);
            if !registry.iter().any(|catalog| only.view(catalog).is_some()) {
                let suggestion = suggested_catalog(registry, pattern);
                lines.push(format!(
                    "[tenants.{tenant}] catalogs: `{}` matches no catalog{suggestion}",
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
                let suggestion = near.first().map(|name| format!("; perhaps `{name}`")).unwrap_or_default();
                lines.push(format!(
                    "[tenants.{tenant}] capabilities: `{}` matches no capability{suggestion}",
                    base::printable(pattern, 80)
                ));
            }
        }
    }
    lines
}

/// Returns the catalog that an entry may have meant. A list takes ids only, so an alias suggests its id.
fn suggested_catalog(registry: &Registry, pattern: &str) -> String {
    let by_name = registry.get(pattern).or_else(|| registry.get(&pattern.to_lowercase())).map(|c| c.id.to_string());
    let nearest = || similar_names(pattern, registry.iter().map(|c| c.id.as_str())).into_iter().next();
    by_name.or_else(nearest).map(|id| format!("; perhaps `{id}`")).unwrap_or_default()
}

impl TenantSettings {
    /// Returns what the tenant may use.
    pub fn permissions(&self) -> Permissions {
        let catalogs = as_strs(self.catalogs.as_deref());
        let capabilities = as_strs(self.capabilities.as_deref());
        Permissions::new(catalogs.as_deref(), capabilities.as_deref(), self.read_only)
    }
}

fn as_strs(list: Option<&[String]>) -> Option<Vec<&str>> {
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
    fn an_entry_that_matches_nothing_is_reported_with_a_suggestion() {
        let registry = Registry::new([crate::shipped::demo_catalog().unwrap()]).unwrap();
        let text =
            "[a]\ncatalogs = [\"DEMO\", \"de*\", \"tracker\"]\ncapabilities = [\"demo:ticket_lst\", \"ticket_*\"]\n";
        let lines = unmatched_entries(&settings(text), &registry);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "[tenants.a] catalogs: `DEMO` matches no catalog; perhaps `demo`");
        assert_eq!(
            lines[2],
            "[tenants.a] capabilities: `demo:ticket_lst` matches no capability; perhaps `demo:ticket_list`"
        );
        assert!(unmatched_entries(&settings("[a]\ncatalogs = [\"*\"]\n"), &registry).is_empty());
    }

    #[test]
    fn a_key_names_one_tenant_only() {
        let key = format!("{{sha256 = \"{}\"}}", Digest::of(b"x"));
        assert!(check_tenants(&settings(&format!("[a]\nkeys = [{key}]\n"))).is_ok());
        assert!(check_tenants(&settings(&format!("[a]\nkeys = [{key}]\n[b]\nkeys = [{key}]\n"))).is_err());
        assert!(check_tenants(&settings("[a]\ncalls_per_minute = 0\n")).is_err());
    }

    #[test]
    fn keys_of_local_are_accepted_without_a_table_only_if_no_tenant_has_one() {
        let accepted = |text: &str| named_tenants(&settings(text)).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(accepted(""), ["local"]);
        assert_eq!(accepted("[acme]\n"), ["acme"]);
        assert_eq!(accepted("[acme]\n[local]\n"), ["acme", "local"]);
        assert_eq!(find_named_tenant(&settings(""), "local").unwrap(), TenantId::local());
        assert!(find_named_tenant(&settings("[acme]\n"), "local").is_err());
        assert!(find_named_tenant(&settings(""), "acme").is_err());
    }

    #[test]
    fn a_tenant_is_found_in_the_settings_or_is_local() {
        let known = settings("[acme]\n");
        assert_eq!(find_tenant(&known, "acme").unwrap().as_str(), "acme");
        assert_eq!(find_tenant(&known, "local").unwrap(), TenantId::local());
        assert!(find_tenant(&known, "acne").unwrap_err().to_string().contains("acme"));
    }
}

//! `tokamak token`: makes, lists and revokes API keys.
//! Invariant: a key is printed only when it is made, to standard output. The store has only the digest of the key.

use std::collections::BTreeSet;
use std::path::Path;

use access::Identity;
use access::keys::{self, ConfiguredKey, NewKey, Revocation, StoredKey};
use base::{Principal, TenantId};
use ports::Clock;
use serde_json::{Value, json};

use crate::args::{Settings, TokenAction, TokenArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::{SystemClock, SystemEntropy};
use crate::{log, tenants, wiring};

pub async fn run(config_file: Option<&Path>, args: &TokenArgs, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let config = Config::read(config_file, &Settings::from(&args.folder))?;
    match &args.action {
        TokenAction::New { tenant, principal, print } => {
            let tenant = tenants::find_named_tenant(&config.tenants, tenant)?;
            let principal = match principal {
                Some(name) => Principal::parse(name).map_err(|cause| Failure::Principal { cause })?,
                None => tenants::default_principal(),
            };
            new(&config, &Identity { tenant, principal }, *print, output).await
        }
        TokenAction::List { tenant } => list(&config, tenant.as_deref(), output).await,
        TokenAction::Revoke { id } => revoke(&config, id, output).await,
        TokenAction::DeleteAll { yes } => delete_all(&config, *yes, output).await,
    }
}

async fn new(config: &Config, identity: &Identity, print: bool, output: &Output) -> Result<(), Failure> {
    let key = NewKey::draw(&SystemEntropy, &identity.tenant);
    let id = key.digest.short();
    let setting = format!("{{ sha256 = \"{}\", principal = \"{}\" }}", key.digest, identity.principal);
    if !print {
        let store = wiring::open_store(config)?;
        keys::store_key(store.as_ref(), &key, identity, SystemClock.now()).await?;
    }
    if output.json {
        let (tenant, principal) = (&identity.tenant, &identity.principal);
        let mut value = json!({"key": key.key.expose(), "id": id, "tenant": tenant, "principal": principal});
        if print {
            value["setting"] = json!(setting);
        }
        output.value(&value);
        return Ok(());
    }
    output.line(key.key.expose());
    if print {
        output.notice(&format!(
            "the key is not stored; to make the key valid, add this entry to `keys` of [tenants.{}] in the settings:",
            identity.tenant
        ));
        output.notice(&format!("  {setting}"));
    } else {
        output.notice(&format!(
            "the id of the key is {id}; the key cannot be printed again. A running server requires keys from the first one on"
        ));
    }
    Ok(())
}

async fn list(config: &Config, tenant: Option<&str>, output: &Output) -> Result<(), Failure> {
    let store = wiring::open_store(config)?;
    let stored = keys::tenants_with_keys(store.as_ref()).await?;
    let chosen: Vec<TenantId> = match tenant {
        // A tenant whose table was deleted has keys too, and its name is not in the settings.
        Some(name) => match stored.iter().find(|tenant| tenant.as_str() == name) {
            Some(tenant) => vec![tenant.clone()],
            None => vec![tenants::find_tenant(&config.tenants, name)?],
        },
        None => tenants::named_tenants(&config.tenants)
            .into_iter()
            .chain(stored)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
    };
    let configured =
        tenants::configured_keys(&config.tenants).into_iter().filter(|key| chosen.contains(&key.identity.tenant));
    let mut values: Vec<Value> = configured.map(|key| configured_key_value(&key)).collect();
    let accepted = tenants::named_tenants(&config.tenants);
    for tenant in &chosen {
        let refused = !accepted.contains(tenant);
        for key in keys::list(store.as_ref(), tenant).await? {
            let mut value = stored_key_value(&key);
            if refused && key.revoked.is_none() {
                value["refused"] = json!(tenants::unnamed_tenant_problem(tenant));
            }
            values.push(value);
        }
    }
    if output.json {
        output.value(&json!({"keys": values}));
        return Ok(());
    }
    for value in &values {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let created = value["created"].as_str().map(|at| format!(" · made {at}")).unwrap_or_default();
        let revoked = value["revoked"].as_str().map(|at| format!(" · REVOKED {at}")).unwrap_or_default();
        let refused = value["refused"].as_str().map(|why| format!(" · REFUSED: {why}")).unwrap_or_default();
        let (tenant, principal, from) = (text("tenant"), text("principal"), text("from"));
        output
            .line(&format!("{} · {tenant} · {principal} · {from}{created}{revoked}{refused}", output.bold(text("id"))));
    }
    if values.is_empty() {
        output.notice("there are no API keys; `tokamak token new --tenant NAME` makes one");
    }
    Ok(())
}

async fn revoke(config: &Config, id: &str, output: &Output) -> Result<(), Failure> {
    let shown = base::printable(id, 80);
    let store = wiring::open_store(config)?;
    // The keys of a tenant whose table was deleted can be revoked too.
    let stored = keys::tenants_with_keys(store.as_ref()).await?;
    let (key, was_revoked) = match keys::revoke(store.as_ref(), &stored, id, SystemClock.now()).await? {
        Revocation::Revoked(key) => (key, false),
        Revocation::AlreadyRevoked(key) => (key, true),
        Revocation::Ambiguous => return Err(Failure::SeveralKeys { id: shown }),
        Revocation::Unknown => {
            let in_settings =
                tenants::configured_keys(&config.tenants).iter().any(|key| key.digest.to_string().starts_with(id));
            let configured = in_settings && !id.is_empty();
            return Err(if configured { Failure::KeyInSettings { id: shown } } else { Failure::NoKey { id: shown } });
        }
    };
    if output.json {
        output.value(&stored_key_value(&key));
    } else {
        let state = if was_revoked { "was already revoked" } else { "is revoked; the next request with it is refused" };
        output.line(&format!("the key {} of the tenant {} {state}", key.digest.short(), key.tenant));
    }
    Ok(())
}

async fn delete_all(config: &Config, yes: bool, output: &Output) -> Result<(), Failure> {
    if !yes {
        return Err(Failure::Usage(
            "every API key would be deleted, and a server that starts afterwards may answer every caller on loopback without a key; add --yes to delete them".to_owned(),
        ));
    }
    let store = wiring::open_store(config)?;
    let deleted = keys::delete_all(store.as_ref()).await?;
    if output.json {
        output.value(&json!({"deleted": deleted}));
        return Ok(());
    }
    output.line(&format!("{deleted} API keys were deleted"));
    if wiring::keys_required(config, store.as_ref()).await? {
        output.notice("the server still requires keys, because the settings have `auth = \"keys\"`, keys, or tenants");
    } else {
        output.notice("a server that starts from now on answers every caller on loopback without a key");
    }
    Ok(())
}

fn configured_key_value(key: &ConfiguredKey) -> Value {
    let Identity { tenant, principal } = &key.identity;
    json!({"id": key.digest.short(), "tenant": tenant, "principal": principal, "from": "settings"})
}

fn stored_key_value(key: &StoredKey) -> Value {
    let mut value = json!({
        "id": key.digest.short(),
        "tenant": key.tenant,
        "principal": key.principal,
        "from": "store",
        "created": key.created.to_string(),
    });
    if let Some(revoked) = key.revoked {
        value["revoked"] = json!(revoked.to_string());
    }
    value
}

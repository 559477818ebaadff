//! `tokamak token`: makes, lists and revokes API keys.
//! Invariant: a key is printed only when it is made, to standard output. The store has only the digest of the key.

use std::path::Path;

use access::Identity;
use access::keys::{self, ConfiguredKey, NewKey, Revocation, StoredKey};
use base::Principal;
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
            let tenant = tenants::find_tenant(&config.tenants, tenant)?;
            let principal = match principal {
                Some(name) => Principal::parse(name).map_err(|cause| Failure::Principal { cause })?,
                None => tenants::default_principal(),
            };
            new(&config, &Identity { tenant, principal }, *print, output).await
        }
        TokenAction::List { tenant } => list(&config, tenant.as_deref(), output).await,
        TokenAction::Revoke { id } => revoke(&config, id, output).await,
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
            "the id of the key is {id}; the key cannot be printed again. A server that was started before the first key was made accepts keys only after a restart"
        ));
    }
    Ok(())
}

async fn list(config: &Config, tenant: Option<&str>, output: &Output) -> Result<(), Failure> {
    let chosen = match tenant {
        Some(name) => vec![tenants::find_tenant(&config.tenants, name)?],
        None => tenants::all_tenants(&config.tenants),
    };
    let configured =
        tenants::configured_keys(&config.tenants).into_iter().filter(|key| chosen.contains(&key.identity.tenant));
    let mut values: Vec<Value> = configured.map(|key| configured_key_value(&key)).collect();
    let store = wiring::open_store(config)?;
    for tenant in &chosen {
        values.extend(keys::list(store.as_ref(), tenant).await?.iter().map(stored_key_value));
    }
    if output.json {
        output.value(&json!({"keys": values}));
        return Ok(());
    }
    for value in &values {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let created = value["created"].as_str().map(|at| format!(" · made {at}")).unwrap_or_default();
        let revoked = value["revoked"].as_str().map(|at| format!(" · REVOKED {at}")).unwrap_or_default();
        let (tenant, principal, from) = (text("tenant"), text("principal"), text("from"));
        output.line(&format!("{} · {tenant} · {principal} · {from}{created}{revoked}", output.bold(text("id"))));
    }
    if values.is_empty() {
        output.notice("there are no API keys; `tokamak token new --tenant NAME` makes one");
    }
    Ok(())
}

async fn revoke(config: &Config, id: &str, output: &Output) -> Result<(), Failure> {
    let shown = base::printable(id, 80);
    let store = wiring::open_store(config)?;
    let (key, was_revoked) =
        match keys::revoke(store.as_ref(), &tenants::all_tenants(&config.tenants), id, SystemClock.now()).await? {
            Revocation::Revoked(key) => (key, false),
            Revocation::AlreadyRevoked(key) => (key, true),
            Revocation::Ambiguous => return Err(Failure::SeveralKeys { id: shown }),
            Revocation::Unknown => {
                let in_settings =
                    tenants::configured_keys(&config.tenants).iter().any(|key| key.digest.to_string().starts_with(id));
                let configured = in_settings && !id.is_empty();
                return Err(if configured {
                    Failure::KeyInSettings { id: shown }
                } else {
                    Failure::NoKey { id: shown }
                });
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

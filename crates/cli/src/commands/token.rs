//! `tokamak token`: makes, lists and revokes API keys.
//! Invariant: a key is printed when it is made, to standard output and nowhere else; what is kept is its digest.

use std::path::Path;

use access::Identity;
use access::keys::{self, ConfiguredKey, NewKey, Revocation, StoredKey};
use base::Principal;
use ports::Clock;
use serde_json::{Value, json};

use crate::args::{Settings, Token, TokenAction};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::{SystemClock, SystemEntropy};
use crate::{log, tenants, wiring};

pub async fn run(file: Option<&Path>, args: &Token, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let config =
        Config::read(file, &Settings { data: args.data.clone(), keep: args.keep.clone(), ..Settings::default() })?;
    match &args.action {
        TokenAction::New { tenant, principal, print } => {
            let tenant = tenants::named(&config.tenants, tenant)?;
            let principal = match principal {
                Some(name) => Principal::parse(name).map_err(|cause| Failure::Principal { cause })?,
                None => tenants::nobody(),
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
        let store = wiring::store(config)?;
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
            "nothing is kept here; to let it in, add this to `keys` of [tenants.{}]:",
            identity.tenant
        ));
        output.notice(&format!("  {setting}"));
    } else {
        output.notice(&format!(
            "id {id}; it is not shown again. A server that was started without keys takes it after a restart"
        ));
    }
    Ok(())
}

async fn list(config: &Config, tenant: Option<&str>, output: &Output) -> Result<(), Failure> {
    let asked = match tenant {
        Some(name) => vec![tenants::named(&config.tenants, name)?],
        None => tenants::all(&config.tenants),
    };
    let configured = tenants::keys(&config.tenants).into_iter().filter(|key| asked.contains(&key.identity.tenant));
    let mut values: Vec<Value> = configured.map(|key| in_settings(&key)).collect();
    let store = wiring::store(config)?;
    for tenant in &asked {
        values.extend(keys::list(store.as_ref(), tenant).await?.iter().map(kept));
    }
    if output.json {
        output.value(&json!({"keys": values}));
        return Ok(());
    }
    for value in &values {
        let word = |name: &str| value[name].as_str().unwrap_or_default();
        let (id, tenant, principal, from) = (word("id"), word("tenant"), word("principal"), word("from"));
        let created = value["created"].as_str().map(|at| format!(" · made {at}")).unwrap_or_default();
        let revoked = value["revoked"].as_str().map(|at| format!(" · REVOKED {at}")).unwrap_or_default();
        output.line(&format!("{} · {tenant} · {principal} · {from}{created}{revoked}", output.bold(id)));
    }
    if values.is_empty() {
        output.notice("there are no keys; `tokamak token new --tenant NAME` makes one");
    }
    Ok(())
}

async fn revoke(config: &Config, id: &str, output: &Output) -> Result<(), Failure> {
    let (asked, shown) = (tenants::all(&config.tenants), base::printable(id, 80));
    let store = wiring::store(config)?;
    let (key, before) = match keys::revoke(store.as_ref(), &asked, id, SystemClock.now()).await? {
        Revocation::Revoked(key) => (key, false),
        Revocation::AlreadyRevoked(key) => (key, true),
        Revocation::Ambiguous => return Err(Failure::SeveralKeys { id: shown }),
        Revocation::Unknown => {
            let in_settings = tenants::keys(&config.tenants).iter().any(|key| key.digest.to_string().starts_with(id));
            let configured = in_settings && !id.is_empty();
            return Err(if configured { Failure::KeyInSettings { id: shown } } else { Failure::NoKey { id: shown } });
        }
    };
    if output.json {
        output.value(&kept(&key));
    } else {
        let when = if before { "was revoked before" } else { "is revoked; it opens nothing from the next request on" };
        output.line(&format!("{} of {} {when}", key.digest.short(), key.tenant));
    }
    Ok(())
}

fn in_settings(key: &ConfiguredKey) -> Value {
    let Identity { tenant, principal } = &key.identity;
    json!({"id": key.digest.short(), "tenant": tenant, "principal": principal, "from": "settings"})
}

fn kept(key: &StoredKey) -> Value {
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

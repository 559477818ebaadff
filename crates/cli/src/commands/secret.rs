//! `tokamak secret`: sets, lists and removes what is in the encrypted store.
//! Invariant: a value comes from standard input or from a prompt that does not show it, never from the command line, and is
//! printed nowhere.

use std::io::{IsTerminal, Read};
use std::path::Path;

use base::{Secret, TenantId};
use serde_json::json;
use store::secrets::{MAX_SECRET_BYTES, SecretStore, SetEffect};
use zeroize::Zeroizing;

use crate::args::{Secret as Args, SecretAction, Settings};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, ports, wiring};

pub fn run(file: Option<&Path>, args: &Args, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let config = Config::read(file, &Settings { data: args.data.clone(), ..Settings::default() })?;
    let store = wiring::secret_store(&config);
    // The only tenant of a server without auth.
    let tenant = TenantId::local();
    match &args.action {
        SecretAction::Set { value: Some(_), .. } => Err(Failure::SecretInput {
            what: "a value is not taken from the command line, where others can see it",
            hint: "send it on standard input, and change the secret if it was a real one",
        }),
        SecretAction::Set { name, value: None } => set(&store, &tenant, name, output),
        SecretAction::List => list(&store, &tenant, output),
        SecretAction::Remove { name } => remove(&store, &tenant, name, output),
    }
}

fn set(store: &SecretStore, tenant: &TenantId, name: &str, output: &Output) -> Result<(), Failure> {
    if name == ports::SECRETS_KEY {
        let hint = "set it in the environment, or keep it in a file that `secrets_key_file` names";
        return Err(Failure::SecretInput { what: "the key cannot be kept in the store it opens", hint });
    }
    // Nobody should type a value that cannot be stored.
    if !store.has_key() {
        return Err(store::secrets::Error::NoKey.into());
    }
    store.names(tenant)?;
    let change = store.set(tenant, name, &value(name)?)?;
    if output.json {
        output.value(&json!({"name": name, "replaced": change == SetEffect::Replaced}));
    } else {
        output.line(&match change {
            SetEffect::Added => format!("{name} is set"),
            SetEffect::Replaced => format!("{name} is set to another value"),
        });
    }
    Ok(())
}

fn list(store: &SecretStore, tenant: &TenantId, output: &Output) -> Result<(), Failure> {
    let names = store.names(tenant)?;
    if output.json {
        output.value(&json!({"secrets": names}));
        return Ok(());
    }
    for name in &names {
        output.line(name);
    }
    if names.is_empty() {
        output.notice("there are no encrypted secrets; `tokamak secret set NAME` adds one");
    }
    Ok(())
}

fn remove(store: &SecretStore, tenant: &TenantId, name: &str, output: &Output) -> Result<(), Failure> {
    if !store.remove(tenant, name)? {
        return Err(Failure::NoSecret { name: name.escape_debug().to_string() });
    }
    if output.json {
        output.value(&json!({"name": name, "removed": true}));
    } else {
        output.line(&format!("{name} is removed"));
    }
    Ok(())
}

fn value(name: &str) -> Result<Secret, Failure> {
    let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("Value of {name}: ")).map(Secret::new).map_err(unreadable);
    }
    // At its full size from the start: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES + 3));
    std::io::stdin().take(MAX_SECRET_BYTES as u64 + 3).read_to_end(&mut bytes).map_err(unreadable)?;
    ports::line(std::mem::take(&mut *bytes))
        .ok_or(Failure::SecretInput { what: "the value is not UTF-8 text", hint: "encode it, for example as base64" })
}

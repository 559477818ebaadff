//! `tokamak secret`: sets, lists and removes secrets in the encrypted store.
//! Invariant: the value of a secret is read from standard input or from a prompt that does not show it, and is never printed. A value on
//! the command line is refused.

use std::io::{IsTerminal, Read};
use std::path::Path;

use base::{Secret, TenantId};
use serde_json::json;
use store::secrets::{MAX_SECRET_BYTES, SecretStore, SetEffect};
use zeroize::Zeroizing;

use crate::args::{SecretAction, SecretArgs, Settings};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, ports, wiring};

pub fn run(config_file: Option<&Path>, args: &SecretArgs, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let config = Config::read(config_file, &Settings { data: args.data.clone(), ..Settings::default() })?;
    let store = wiring::secret_store(&config);
    // The commands manage only the secrets of the tenant `local`, which is the tenant of every request to a server without API keys.
    let tenant = TenantId::local();
    match &args.action {
        SecretAction::Set { value: Some(_), .. } => Err(Failure::SecretInput {
            problem: "the value of a secret is not accepted on the command line, where other users of the machine can read it",
            hint: "send the value on standard input; if the value was a real secret, replace it by a new one",
        }),
        SecretAction::Set { name, value: None } => set(&store, &tenant, name, output),
        SecretAction::List => list(&store, &tenant, output),
        SecretAction::Remove { name } => remove(&store, &tenant, name, output),
    }
}

fn set(store: &SecretStore, tenant: &TenantId, name: &str, output: &Output) -> Result<(), Failure> {
    if name == ports::SECRETS_KEY {
        let problem = "the key of the encrypted store cannot be stored in this store";
        let hint = "set the key in the environment, or write it to a file and name this file in `secrets_key_file`";
        return Err(Failure::SecretInput { problem, hint });
    }
    // The store is opened before the value is read, so that a user does not type a value that cannot be stored.
    if !store.has_key() {
        return Err(store::secrets::Error::NoKey.into());
    }
    store.names(tenant)?;
    let change = store.set(tenant, name, &read_value(name)?)?;
    if output.json {
        output.value(&json!({"name": name, "replaced": change == SetEffect::Replaced}));
    } else {
        output.line(&match change {
            SetEffect::Added => format!("{name} is set"),
            SetEffect::Replaced => format!("{name} is replaced"),
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
        output.notice("the encrypted store has no secrets; `tokamak secret set NAME` adds one");
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

/// Reads the value of a secret: from a prompt if standard input is a terminal, otherwise all of standard input.
fn read_value(name: &str) -> Result<Secret, Failure> {
    let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("Value of {name}: ")).map(Secret::new).map_err(unreadable);
    }
    // The buffer has its full size from the start, because a growing buffer would leave copies of the secret in memory. The three extra
    // bytes are for a line break and for one byte by which a value that is too long is recognized.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES + 3));
    std::io::stdin().take(MAX_SECRET_BYTES as u64 + 3).read_to_end(&mut bytes).map_err(unreadable)?;
    let problem = "the value of the secret is not UTF-8 text";
    ports::secret_of_line(std::mem::take(&mut *bytes))
        .ok_or(Failure::SecretInput { problem, hint: "encode the value, for example as base64" })
}

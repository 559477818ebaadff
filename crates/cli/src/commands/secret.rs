//! `tokamak secret`: sets, lists and removes secrets in the encrypted store, and binds secrets to origins.
//! Invariant: the value of a secret is read from standard input or from a prompt that does not show it, and is never printed. A value on
//! the command line is refused.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::path::Path;

use base::{Origin, Secret, TenantId};
use serde_json::json;
use store::secrets::{Bindings, MAX_SECRET_BYTES, SecretStore, SetEffect};
use zeroize::Zeroizing;

use crate::args::{SecretAction, SecretArgs, Settings};
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, ports, shipped, wiring};

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
        SecretAction::Set { name, value: None } => set(&config, &store, &tenant, name, output),
        SecretAction::List => list(&config, &store, &tenant, output),
        SecretAction::Bind { name, origins } => bind(&config, name, origins, output),
        SecretAction::Unbind { name, origin } => unbind(&config, name, origin.as_deref(), output),
        SecretAction::Remove { name } => remove(&store, &tenant, name, output),
    }
}

fn set(config: &Config, store: &SecretStore, tenant: &TenantId, name: &str, output: &Output) -> Result<(), Failure> {
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
        if !all_bindings(config)?.contains_key(name) {
            output.notice(&format!(
                "{name} is bound to no origin, so it is sent nowhere; `tokamak secret bind {name} ORIGIN` binds it"
            ));
        }
    }
    Ok(())
}

/// Returns all bindings: those of the settings, of the shipped catalogs and of `tokamak secret bind`.
fn all_bindings(config: &Config) -> Result<Bindings, Failure> {
    let mut all = wiring::secret_bindings(config).list()?;
    for (name, origin) in shipped::SECRET_ORIGINS {
        // Every entry is a valid origin, which a test checks.
        all.entry((*name).to_owned()).or_default().extend(Origin::parse(origin).ok());
    }
    Ok(all)
}

fn list(config: &Config, store: &SecretStore, tenant: &TenantId, output: &Output) -> Result<(), Failure> {
    let names = store.names(tenant)?;
    let all = all_bindings(config)?;
    // The bindings of shipped catalogs are listed only for secrets that are set, because no user has all of them.
    let chosen = wiring::secret_bindings(config).list()?;
    let listed: BTreeSet<&String> = names.iter().chain(chosen.keys()).collect();
    if output.json {
        let bindings: Bindings =
            listed.iter().filter_map(|name| Some(((*name).clone(), all.get(*name)?.clone()))).collect();
        output.value(&json!({"secrets": names, "bindings": bindings}));
        return Ok(());
    }
    for name in &listed {
        let origins: Vec<&str> = all.get(*name).into_iter().flatten().map(Origin::as_str).collect();
        let bound =
            if origins.is_empty() { "bound to no origin".to_owned() } else { format!("for {}", origins.join(", ")) };
        let place = if names.contains(name) { "" } else { " (not in the encrypted store)" };
        output.line(&format!("{name}{place}  {bound}"));
    }
    if names.is_empty() {
        output.notice("the encrypted store has no secrets; `tokamak secret set NAME` adds one");
    }
    Ok(())
}

fn bind(config: &Config, name: &str, origins: &[String], output: &Output) -> Result<(), Failure> {
    let origins: Vec<Origin> = origins.iter().map(|text| parse_origin(name, text)).collect::<Result<_, _>>()?;
    // All origins are checked before the first binding is stored.
    origins.iter().try_for_each(|origin| config::check_binding(name, origin))?;
    let store = wiring::secret_bindings(config);
    for origin in &origins {
        store.stored().bind(name, origin)?;
    }
    if output.json {
        output.value(&json!({"name": name, "origins": origins}));
    } else {
        let texts: Vec<&str> = origins.iter().map(Origin::as_str).collect();
        output.line(&format!("{name} may be sent to {}", texts.join(", ")));
    }
    Ok(())
}

fn unbind(config: &Config, name: &str, origin: Option<&str>, output: &Output) -> Result<(), Failure> {
    let origin = origin.map(|text| parse_origin(name, text)).transpose()?;
    let bindings = wiring::secret_bindings(config);
    if !bindings.stored().unbind(name, origin.as_ref())? {
        return Err(Failure::NoBinding { name: base::printable(name, 80) });
    }
    if output.json {
        output.value(&json!({"name": name, "removed": true}));
        return Ok(());
    }
    let from = origin.map_or_else(|| "no origin any more".to_owned(), |origin| format!("{origin} no longer"));
    output.line(&format!("{name} is bound to {from}"));
    if bindings.is_configured(name) {
        output.notice(&format!("the table [secrets] of the settings still binds {name}"));
    }
    Ok(())
}

fn parse_origin(name: &str, text: &str) -> Result<Origin, Failure> {
    Origin::parse(text)
        .map_err(|problem| Failure::Binding { name: base::printable(name, 80), problem: problem.to_string() })
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

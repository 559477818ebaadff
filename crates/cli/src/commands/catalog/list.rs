//! `tokamak catalog list`: lists the catalogs that a server would offer with these settings.
//! Invariant: catalog files with mistakes are listed too. The output has the names of secrets and whether they are set and bound, but no values.

use std::path::Path;
use std::sync::Arc;

use base::TenantId;
use catalog::Catalog;
use serde_json::{Value, json};

use super::find;
use crate::args::CatalogListArgs;
use crate::catalogs::Catalogs;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::OperatorSecrets;
use crate::{tenants, wiring};

pub fn run(config_file: Option<&Path>, args: &CatalogListArgs, output: &Output) -> Result<(), Failure> {
    let config = find::read_config(config_file, &args.folders)?;
    let catalogs = Catalogs::load(&config)?;
    let allow = tenants::permissions_of(&config.tenants, args.tenant.as_deref())?;
    let allowed = |(catalog, file): (Arc<Catalog>, _)| Some(OfferedCatalog { catalog: allow.view(&catalog)?, file });
    let offered: Vec<OfferedCatalog> = catalogs.offered().into_iter().filter_map(allowed).collect();
    let mut problems: Vec<String> = catalogs.problems().iter().flat_map(|p| p.lines()).collect();
    problems.extend(tenants::unmatched_entries(&config.tenants, &catalogs.registry()));
    let secrets = wiring::operator_secrets(&config, wiring::secret_store(&config));
    if output.json {
        let catalogs: Vec<Value> = offered.iter().map(|one| catalog_value(one, &secrets)).collect();
        output.value(&json!({"catalogs": catalogs, "problems": problems}));
        return Ok(());
    }
    for one in &offered {
        output.line(&catalog_line(one, &secrets, output));
    }
    for line in problems {
        output.line(&line);
    }
    if offered.is_empty() {
        output.line("there are no catalogs; put *.yaml files into a folder, and name the folder with --catalogs DIR");
    }
    Ok(())
}

/// A catalog that a server would offer.
struct OfferedCatalog {
    /// The part of the catalog that the tenant may use.
    catalog: Arc<Catalog>,
    /// The path of the catalog's file. `None` for a shipped catalog.
    file: Option<String>,
}

/// The name of a secret that a catalog uses, and whether the catalog's calls can use it.
struct SecretState {
    name: String,
    /// Whether the secret has a value somewhere.
    set: bool,
    /// Whether the secret is bound to the origin that receives it.
    bound: bool,
}

impl SecretState {
    fn describe(&self) -> String {
        let state = match (self.set, self.bound) {
            (true, true) => "set",
            (true, false) => "NOT BOUND",
            (false, _) => "NOT SET",
        };
        format!("{} is {state}", self.name)
    }
}

/// Returns the state of each secret that a catalog names. A secret that the catalog names several times is listed once.
fn secret_states(offered: &OfferedCatalog, secrets: &OperatorSecrets) -> Vec<SecretState> {
    let catalog = &offered.catalog;
    let mut states: Vec<SecretState> = Vec::new();
    for (name, origin) in catalog.auth.iter().flat_map(|auth| wiring::secret_uses(auth, &catalog.origin)) {
        let bound = secrets.bindings().allows(name, origin).unwrap_or(false);
        match states.iter_mut().find(|state| state.name == name) {
            Some(state) => state.bound &= bound,
            None => {
                let set = secrets.find(&TenantId::local(), name).is_ok();
                states.push(SecretState { name: name.to_owned(), set, bound });
            }
        }
    }
    states
}

fn source(offered: &OfferedCatalog) -> String {
    offered.file.clone().unwrap_or_else(|| "shipped".to_owned())
}

fn catalog_line(offered: &OfferedCatalog, secrets: &OperatorSecrets, output: &Output) -> String {
    let catalog = &offered.catalog;
    let secrets: Vec<String> = secret_states(offered, secrets).iter().map(SecretState::describe).collect();
    let secrets = if secrets.is_empty() { "no secrets".to_owned() } else { secrets.join(", ") };
    format!(
        "{} {} · {} · {} entities, {} capabilities · {} · {} · {secrets}",
        output.bold(catalog.id.as_str()),
        catalog.version,
        catalog.title,
        catalog.offered().count(),
        catalog.capabilities.len(),
        catalog.digest().short(),
        source(offered),
    )
}

fn catalog_value(offered: &OfferedCatalog, secrets: &OperatorSecrets) -> Value {
    let catalog = &offered.catalog;
    let secrets: Vec<Value> = secret_states(offered, secrets)
        .into_iter()
        .map(|secret| json!({"name": secret.name, "set": secret.set, "bound": secret.bound}))
        .collect();
    json!({
        "id": catalog.id,
        "version": catalog.version,
        "title": catalog.title,
        "aliases": catalog.aliases,
        "origin": catalog.origin,
        "entities": catalog.offered().count(),
        "capabilities": catalog.capabilities.len(),
        "digest": catalog.digest(),
        "from": source(offered),
        "secrets": secrets,
    })
}

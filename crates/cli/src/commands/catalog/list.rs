//! `tokamak catalog list`: the catalogs that a server with these settings would offer.
//! Invariant: what a server could not offer is said here too; of a secret only its name and whether it is set are said.

use std::path::Path;
use std::sync::Arc;

use base::TenantId;
use catalog::Catalog;
use serde_json::{Value, json};

use super::find;
use crate::args::CatalogList;
use crate::catalogs::Catalogs;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::OperatorSecrets;
use crate::{tenants, wiring};

pub fn run(file: Option<&Path>, args: &CatalogList, output: &Output) -> Result<(), Failure> {
    let config = find::config(file, &args.folders)?;
    let catalogs = Catalogs::load(&config)?;
    let allow = tenants::allow(&config.tenants, args.tenant.as_deref())?;
    let seen = |(catalog, file): (Arc<Catalog>, _)| Some(Offered { catalog: allow.view(&catalog)?, file });
    let offered: Vec<Offered> = catalogs.offered().into_iter().filter_map(seen).collect();
    let mut problems: Vec<String> = catalogs.problems().iter().flat_map(|p| p.lines()).collect();
    problems.extend(tenants::idle(&config.tenants, &catalogs.registry()));
    let kept = wiring::secrets(&config, wiring::secret_store(&config));
    if output.json {
        let catalogs: Vec<Value> = offered.iter().map(|o| value(o, &kept)).collect();
        output.value(&json!({"catalogs": catalogs, "problems": problems}));
        return Ok(());
    }
    for one in &offered {
        output.line(&lines(one, &kept, output));
    }
    for line in problems {
        output.line(&line);
    }
    if offered.is_empty() {
        output.line("no catalogs; put *.yaml files into a folder and name it with --catalogs DIR");
    }
    Ok(())
}

/// A catalog, and the file that it is from; none is one of the binary's own.
struct Offered {
    catalog: Arc<Catalog>,
    file: Option<String>,
}

struct SecretState {
    name: String,
    set: bool,
}

/// One that several parts of the auth name is asked for once.
fn secrets(offered: &Offered, kept: &OperatorSecrets) -> Vec<SecretState> {
    let mut names: Vec<&str> = offered.catalog.auth.iter().flat_map(base::Auth::secret_names).collect();
    names.dedup();
    names
        .into_iter()
        .map(|name| SecretState { name: name.to_owned(), set: kept.find(&TenantId::local(), name).is_ok() })
        .collect()
}

fn from(offered: &Offered) -> String {
    offered.file.clone().unwrap_or_else(|| "shipped".to_owned())
}

fn lines(offered: &Offered, kept: &OperatorSecrets, output: &Output) -> String {
    let catalog = &offered.catalog;
    let secrets: Vec<String> = secrets(offered, kept)
        .into_iter()
        .map(|s| format!("{} is {}", s.name, if s.set { "set" } else { "NOT SET" }))
        .collect();
    let secrets = if secrets.is_empty() { "no secrets".to_owned() } else { secrets.join(", ") };
    format!(
        "{} {} · {} · {} entities, {} capabilities · {} · {} · {secrets}",
        output.bold(catalog.id.as_str()),
        catalog.version,
        catalog.title,
        catalog.offered().count(),
        catalog.capabilities.len(),
        catalog.digest().short(),
        from(offered),
    )
}

fn value(offered: &Offered, kept: &OperatorSecrets) -> Value {
    let catalog = &offered.catalog;
    let secrets: Vec<Value> =
        secrets(offered, kept).into_iter().map(|s| json!({"name": s.name, "set": s.set})).collect();
    json!({
        "id": catalog.id,
        "version": catalog.version,
        "title": catalog.title,
        "aliases": catalog.aliases,
        "origin": catalog.origin,
        "entities": catalog.offered().count(),
        "capabilities": catalog.capabilities.len(),
        "digest": catalog.digest(),
        "from": from(offered),
        "secrets": secrets,
    })
}

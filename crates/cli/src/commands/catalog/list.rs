//! `tokamak catalog list`: the catalogs that a server with these settings would offer.
//! Invariant: what a server would refuse is refused here; of a secret only its name and whether it is set are said.

use std::path::Path;
use std::sync::Arc;

use catalog::Registry;
use serde_json::{Value, json};

use super::find;
use crate::args::Folders;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::OperatorSecrets;
use crate::wiring::{self, Offered};

pub fn run(file: Option<&Path>, folders: &Folders, output: &Output) -> Result<(), Failure> {
    let config = find::config(file, folders)?;
    let mut offered = wiring::offered(&config)?;
    // Two that claim one name are refused, as `serve` refuses them.
    Registry::new(offered.iter().map(|o| Arc::clone(&o.catalog)))?;
    offered.sort_by(|a, b| a.catalog.id.cmp(&b.catalog.id));
    let kept = wiring::secrets(&config);
    if output.json {
        let catalogs: Vec<Value> = offered.iter().map(|o| value(o, &kept)).collect();
        output.value(&json!({"catalogs": catalogs}));
        return Ok(());
    }
    for one in &offered {
        output.line(&lines(one, &kept, output));
    }
    if offered.is_empty() {
        output.line("no catalogs; put *.yaml files into a folder and name it with --catalogs DIR");
    }
    Ok(())
}

struct SecretState {
    name: String,
    set: bool,
}

/// One that several parts of the auth name is asked for once.
fn secrets(offered: &Offered, kept: &OperatorSecrets) -> Vec<SecretState> {
    let mut names: Vec<&str> = offered.catalog.auth.iter().flat_map(base::Auth::secret_names).collect();
    names.dedup();
    names.into_iter().map(|name| SecretState { name: name.to_owned(), set: kept.find(name).is_ok() }).collect()
}

fn from(offered: &Offered) -> String {
    offered.file.as_ref().map_or_else(|| "shipped".to_owned(), |path| path.display().to_string())
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
        catalog.entities.len(),
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
        "entities": catalog.entities.len(),
        "capabilities": catalog.capabilities.len(),
        "digest": catalog.digest(),
        "from": from(offered),
        "secrets": secrets,
    })
}

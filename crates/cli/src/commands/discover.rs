//! `tokamak discover`: prints the answer that the tool `discover_capabilities` would give with these settings.
//! Invariant: no API is called and no data is stored, so the command calls `session::discover` on the catalogs, without an `App`.

use std::path::Path;

use ::catalog::{Capability, Catalog};
use serde_json::json;
use session::DiscoverRequest;
use teach::discovery::{Decision, Index};

use super::catalog;
use crate::args::DiscoverArgs;
use crate::catalogs::Catalogs;
use crate::failure::Failure;
use crate::output::Output;
use crate::tenants;

pub fn run(config_file: Option<&Path>, args: &DiscoverArgs, output: &Output) -> Result<(), Failure> {
    let config = catalog::read_config(config_file, &args.folders)?;
    let registry = Catalogs::load(&config)?.registry();
    let index = Index::new(&registry);
    let allow = tenants::permissions_of(&config.tenants, args.tenant.as_deref())?;
    let permit = |catalog: &Catalog, capability: &Capability| allow.permits(catalog, capability);
    let request = DiscoverRequest { intent: args.intent.clone(), apis: args.api.clone(), limit: args.limit };
    let discovered =
        session::discover(&registry.view(&allow), &index, &config.limits, &permit, &request).map_err(|error| {
            match error {
                session::Error::Seed(error) => Failure::Seed(error),
                other => Failure::from(other),
            }
        })?;
    let typed = discovered.result.decide();
    if output.json {
        let mut value = server::view::json(&server::view::DiscoveredRows::new(&discovered));
        value["decision"] = json!(typed.decision);
        output.value(&value);
        return Ok(());
    }
    let rows = &discovered.result.rows;
    if rows.is_empty() {
        output.line("no API of the catalogs matches the intent; `tokamak catalog list` lists the APIs");
        return Ok(());
    }
    let widest = rows.iter().map(|hit| hit.api.as_str().len() + 1 + hit.entity.len()).max().unwrap_or_default();
    for hit in rows {
        let name = format!("{}:{}", hit.api, hit.entity);
        output.line(&format!("{} {}", output.bold(&format!("{name:widest$}")), hit.description));
    }
    let advice = match typed.decision {
        Decision::Ready => return Ok(()),
        Decision::ClarifyApi => "several APIs match the intent; name one of them in the intent, or with --api",
        Decision::ClarifyEntity => "several entities match the intent; name the entity that you need in the intent",
        Decision::NoMatch => {
            "the listed entities match only a small part of the intent; perhaps no catalog has the API that you need"
        }
    };
    output.notice(advice);
    Ok(())
}

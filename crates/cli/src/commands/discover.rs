//! `tokamak discover`: what `discover_capabilities` would answer to a model, with these settings.
//! Invariant: nothing is called and nothing is kept.

use std::path::Path;

use catalog::{Capability, Catalog};
use serde_json::json;
use session::DiscoverRequest;
use teach::discovery::{Decision, Index};

use super::catalog as settings;
use crate::args::Discover;
use crate::catalogs::Catalogs;
use crate::failure::Failure;
use crate::output::Output;
use crate::tenants;

pub fn run(file: Option<&Path>, args: &Discover, output: &Output) -> Result<(), Failure> {
    let config = settings::config(file, &args.folders)?;
    let registry = Catalogs::load(&config)?.registry();
    let index = Index::new(&registry);
    let allow = tenants::allow(&config.tenants, args.tenant.as_deref())?;
    let permit = |catalog: &Catalog, capability: &Capability| allow.permits(catalog, capability);
    let request = DiscoverRequest { intent: args.intent.clone(), apis: args.api.clone(), limit: args.limit };
    let discovered =
        session::discover(&registry.view(&allow), &index, &config.limits, &permit, &request).map_err(|error| {
            match error {
                session::Error::Seed(error) => Failure::Seed(error),
                other => Failure::Session(other),
            }
        })?;
    let typed = discovered.found.decide();
    if output.json {
        let mut value = server::view::json(&server::view::DiscoveredRows::new(&discovered));
        value["decision"] = json!(typed.decision);
        output.value(&value);
        return Ok(());
    }
    let rows = &discovered.found.rows;
    if rows.is_empty() {
        output.line("nothing here has words of this intent; `tokamak catalog list` lists the APIs there are");
        return Ok(());
    }
    let wide = rows.iter().map(|hit| hit.api.as_str().len() + 1 + hit.entity.len()).max().unwrap_or_default();
    for hit in rows {
        let name = format!("{}:{}", hit.api, hit.entity);
        output.line(&format!("{} {}", output.bold(&format!("{name:wide$}")), hit.description));
    }
    let unsure = match typed.decision {
        Decision::Ready => return Ok(()),
        Decision::ClarifyApi => "several APIs have this; name one of them in the intent, or with --api",
        Decision::ClarifyEntity => "the intent does not say which of these",
        Decision::NoMatch => "little of the intent is in these; perhaps there is no API for it here",
    };
    output.notice(unsure);
    Ok(())
}

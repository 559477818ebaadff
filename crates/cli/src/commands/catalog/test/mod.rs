//! `tokamak catalog test`: every read of a catalog, called at its origin, and how the answers fit.
//! Invariant: a write is never sent; what could not be called says what to pass.

mod drive;
mod fields;
mod given;
mod known;
mod progress;
mod report;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use base::similar_names;
use catalog::{Capability, Catalog};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::drive::Driver;
use self::given::Given;
use self::known::{Known, Lacking};
use self::progress::Progress;
use self::report::{Ended, Entry, Skip};
use super::find;
use crate::args::{CatalogTest, Writes};
use crate::failure::Failure;
use crate::output::Output;
use crate::wiring;

pub async fn run(file: Option<&Path>, args: &CatalogTest, output: &Output) -> Result<(), Failure> {
    let mut config = find::config(file, &args.folders)?;
    config.limits.request_timeout_ms = args.timeout * 1_000;
    let catalog = find::catalog(&config, &args.catalog)?;
    let chosen = chosen(&catalog, &args.capability)?;
    let given = Given::parse(&args.param)?;
    let reads: Vec<&Capability> = chosen.iter().copied().filter(|c| c.kind.is_read()).collect();
    given.check(&catalog, &reads)?;
    let stop = CancellationToken::new();
    let upstream = wiring::upstream_for(&config, &catalog, &stop).await?;
    let driver = Driver {
        upstream: &upstream,
        catalog: &catalog,
        timeout: Duration::from_secs(args.timeout),
        nesting: config.limits.nesting,
        calls_left: Cell::new(args.calls),
    };
    let mut entries = Trial { driver, given, calls: args.calls, known: Known::default() }.reads(reads, output).await;
    stop.cancel();
    let Writes::Never = args.writes;
    let writes = chosen.iter().filter(|c| !c.kind.is_read());
    entries.extend(writes.map(|c| Entry::new(c, Ended::Skipped(Skip::Write))));
    let place = |entry: &Entry| catalog.capabilities.get_index_of(&entry.capability);
    entries.sort_by_key(place);
    print(&catalog, &entries, output);
    let failed = entries.iter().filter(|e| e.word() == "failed").count();
    if failed == 0 { Ok(()) } else { Err(Failure::Found(format!("{failed} of {} capabilities failed", entries.len()))) }
}

fn chosen<'a>(catalog: &'a Catalog, names: &[String]) -> Result<Vec<&'a Capability>, Failure> {
    if names.is_empty() {
        return Ok(catalog.capabilities.values().collect());
    }
    if let Some(unknown) = names.iter().find(|name| catalog.capability(name).is_none()) {
        let near = similar_names(unknown, catalog.capabilities.keys().map(String::as_str));
        return Err(Failure::NoCapability { catalog: catalog.id.clone(), name: unknown.clone(), near });
    }
    Ok(catalog.capabilities.values().filter(|c| names.contains(&c.name)).collect())
}

struct Trial<'a> {
    driver: Driver<'a>,
    given: Given,
    calls: u32,
    known: Known,
}

impl Trial<'_> {
    /// Calls whatever can be called with what is known, until nothing more can.
    async fn reads(mut self, reads: Vec<&Capability>, output: &Output) -> Vec<Entry> {
        let mut progress = Progress::new(output, reads.len());
        let mut entries = Vec::new();
        let mut waiting = reads;
        while !waiting.is_empty() {
            let catalog = self.driver.catalog;
            let ready = waiting.iter().enumerate().find_map(|(at, capability)| {
                let ways = self.known.ways(catalog, capability, &self.given).ok()?;
                Some((at, ways))
            });
            let Some((at, ways)) = ready else { break };
            let capability = waiting.remove(at);
            progress.begin(&capability.name);
            let result = match self.driver.drive(capability, &ways).await {
                None => Ended::Skipped(Skip::Budget(self.calls)),
                Some((driven, args)) => {
                    self.known.keep(catalog, &capability.returns, &driven.rows);
                    Ended::Called { driven: Box::new(driven), args }
                }
            };
            entries.push(Entry::new(capability, result));
            progress.end_one();
        }
        for capability in waiting {
            progress.begin(&capability.name);
            let lacking = self.known.ways(self.driver.catalog, capability, &self.given).err();
            let lacking = lacking.unwrap_or(Lacking { params: Vec::new(), entities: Vec::new() });
            entries.push(Entry::new(capability, Ended::Skipped(Skip::Lacking(lacking))));
        }
        progress.end();
        entries
    }
}

fn print(catalog: &Catalog, entries: &[Entry], output: &Output) {
    if output.json {
        let capabilities: Vec<Value> = entries.iter().map(Entry::value).collect();
        let count = |word: &str| entries.iter().filter(|e| e.word() == word).count();
        output.value(&json!({
            "id": catalog.id,
            "version": catalog.version,
            "origin": catalog.origin,
            "ok": count("ok"),
            "failed": count("failed"),
            "skipped": count("skipped"),
            "calls": report::calls(entries),
            "capabilities": capabilities,
        }));
        return;
    }
    let widest = entries.iter().map(|e| e.capability.chars().count()).max().unwrap_or(0);
    for entry in entries {
        output.line(&entry.text(widest));
    }
    output.line(&report::summary(entries));
}

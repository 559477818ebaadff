//! `tokamak catalog test`: calls every read of a catalog at its API, and reports where the answers differ from the catalog.
//! Invariant: a write is never sent. If a capability could not be called, the report names the values to pass with `--param`.

mod caller;
mod fields;
mod params;
mod progress;
mod report;
mod samples;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use base::similar_names;
use catalog::{Capability, Catalog};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::caller::CapabilityCaller;
use self::params::GivenParams;
use self::progress::Progress;
use self::report::{EntryResult, ReportEntry, SkipReason};
use self::samples::{MissingValues, Samples};
use super::find;
use crate::args::{CatalogTestArgs, Writes};
use crate::failure::Failure;
use crate::output::Output;
use crate::wiring;

pub async fn run(config_file: Option<&Path>, args: &CatalogTestArgs, output: &Output) -> Result<(), Failure> {
    let mut config = find::read_config(config_file, &args.folders)?;
    config.limits.request_timeout_ms = args.timeout * 1_000;
    let catalog = find::find_catalog(&config, &args.catalog)?;
    let chosen = chosen_capabilities(&catalog, &args.capability)?;
    let given = GivenParams::parse(&args.param)?;
    let reads: Vec<&Capability> = chosen.iter().copied().filter(|c| c.kind.is_read()).collect();
    given.check(&catalog, &reads)?;
    let stop = CancellationToken::new();
    let upstream = wiring::upstream_for(&config, &catalog, &stop).await?;
    let caller = CapabilityCaller {
        upstream: &upstream,
        catalog: &catalog,
        timeout: Duration::from_secs(args.timeout),
        nesting: config.limits.nesting,
        calls_left: Cell::new(args.calls),
    };
    let test = CatalogTest { caller, given, call_budget: args.calls, samples: Samples::default() };
    let mut entries = test.call_reads(reads, output).await;
    stop.cancel();
    // The pattern has only one case, so the compiler refuses this line as soon as `--writes` gets another value.
    let Writes::Never = args.writes;
    let writes = chosen.iter().filter(|c| !c.kind.is_read());
    entries.extend(writes.map(|c| ReportEntry::new(c, EntryResult::Skipped(SkipReason::Write))));
    entries.sort_by_key(|entry| catalog.capabilities.get_index_of(&entry.capability));
    print(&catalog, &entries, output);
    let failed = entries.iter().filter(|entry| entry.outcome() == "failed").count();
    if failed == 0 { Ok(()) } else { Err(Failure::Found(format!("{failed} of {} capabilities failed", entries.len()))) }
}

/// Returns the capabilities that the arguments name, in the order of the catalog. Without such arguments it returns all capabilities.
fn chosen_capabilities<'a>(catalog: &'a Catalog, names: &[String]) -> Result<Vec<&'a Capability>, Failure> {
    if names.is_empty() {
        return Ok(catalog.capabilities.values().collect());
    }
    if let Some(unknown) = names.iter().find(|name| catalog.capability(name).is_none()) {
        let near = similar_names(unknown, catalog.capabilities.keys().map(String::as_str));
        return Err(Failure::NoCapability { catalog: catalog.id.clone(), name: unknown.clone(), near });
    }
    Ok(catalog.capabilities.values().filter(|c| names.contains(&c.name)).collect())
}

/// A test of one catalog.
struct CatalogTest<'a> {
    caller: CapabilityCaller<'a>,
    given: GivenParams,
    /// The value of `--calls`.
    call_budget: u32,
    /// Samples of the rows that were read so far. Later calls get their arguments from these rows.
    samples: Samples,
}

impl CatalogTest<'_> {
    /// Calls all reads whose arguments are known. After each call the search starts again at the first capability, because the rows of
    /// the call may contain the arguments of capabilities that could not be called before.
    async fn call_reads(mut self, reads: Vec<&Capability>, output: &Output) -> Vec<ReportEntry> {
        let mut progress = Progress::new(output, reads.len());
        let mut entries = Vec::new();
        let mut waiting = reads;
        while !waiting.is_empty() {
            let catalog = self.caller.catalog;
            let callable = waiting.iter().enumerate().find_map(|(index, capability)| {
                let argument_sets = self.samples.argument_sets(catalog, capability, &self.given).ok()?;
                Some((index, argument_sets))
            });
            let Some((index, argument_sets)) = callable else { break };
            let capability = waiting.remove(index);
            progress.begin(&capability.name);
            let result = match self.caller.call(capability, &argument_sets).await {
                None => EntryResult::Skipped(SkipReason::Budget(self.call_budget)),
                Some((outcome, args)) => {
                    self.samples.add(catalog, &capability.returns, &outcome.rows);
                    EntryResult::Called { outcome: Box::new(outcome), args }
                }
            };
            entries.push(ReportEntry::new(capability, result));
            progress.end_one();
        }
        for capability in waiting {
            progress.begin(&capability.name);
            let missing = self.samples.argument_sets(self.caller.catalog, capability, &self.given).err();
            let missing = missing.unwrap_or(MissingValues { params: Vec::new(), entities: Vec::new() });
            entries.push(ReportEntry::new(capability, EntryResult::Skipped(SkipReason::Missing(missing))));
        }
        progress.end();
        entries
    }
}

fn print(catalog: &Catalog, entries: &[ReportEntry], output: &Output) {
    if output.json {
        let capabilities: Vec<Value> = entries.iter().map(ReportEntry::value).collect();
        let count = |outcome: &str| entries.iter().filter(|entry| entry.outcome() == outcome).count();
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
    let widest = entries.iter().map(|entry| entry.capability.chars().count()).max().unwrap_or(0);
    for entry in entries {
        output.line(&entry.text(widest));
    }
    output.line(&report::summary(entries));
}

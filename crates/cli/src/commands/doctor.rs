//! `tokamak doctor`: checks whether a server can run on this machine with these settings.
//! Invariant: each check performs the operation that a server needs, such as writing and reading a blob.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::TenantId;
use catalog::Registry;
use ports::Entropy;
use ports::secrets::Error;
use serde_json::json;
use store::secrets::SecretStore;
use tokio_util::sync::CancellationToken;

use crate::args::Settings;
use crate::blobs::BlobsConfig;
use crate::catalogs::Catalogs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::SystemEntropy;
use crate::safety::{self, Installation};
use crate::{log, shipped, tenants, wiring};

/// The result of one check.
struct Finding {
    /// The part of the server that was checked, such as `storage`.
    part: &'static str,
    /// A description of the good state, or the failure.
    result: Result<String, Failure>,
    /// Whether the good state is unsafe. The server runs with it, so it does not fail the command.
    is_unsafe: bool,
}

impl Finding {
    fn new(part: &'static str, result: Result<String, Failure>) -> Self {
        Self { part, result, is_unsafe: false }
    }
}

pub async fn run(file: Option<&Path>, settings: &Settings, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let config = Config::read(file, settings)?;
    let stop = CancellationToken::new();
    // The permissions of the folders are repaired when they are opened, so they are looked at first.
    let repaired = wiring::make_folders_private(&config);
    let catalogs = Catalogs::load(&Config { strict_catalogs: false, ..config.clone() });
    let mut findings = vec![
        Finding::new("settings", Ok(file.map_or("defaults".to_owned(), |f| f.display().to_string()))),
        Finding::new("storage", storage(&config).await),
        Finding::new("blobs", blobs(&config).await),
        Finding::new("port", port(&config).await),
    ];
    findings.splice(1..1, catalog_findings(&catalogs));
    if config.demo {
        findings.push(Finding::new("demo API", demo(&config, &stop).await));
    }
    let store = wiring::secret_store(&config);
    findings.push(Finding::new("secrets", check_secret_store(&store)));
    if let Ok(catalogs) = &catalogs {
        findings.extend(check_catalog_secrets(&config, &catalogs.registry(), store.clone()));
        findings.extend(check_fetch_secrets(&config, store));
    }
    findings.extend(safety(file, &config, catalogs.as_ref().ok().map(Catalogs::registry), repaired).await);
    stop.cancel();
    report(&findings, output);
    let failed = findings.iter().filter(|f| f.result.is_err()).count();
    if failed == 0 { Ok(()) } else { Err(Failure::Found(format!("{failed} of {} checks failed", findings.len()))) }
}

fn report(findings: &[Finding], output: &Output) {
    if output.json {
        let checks: Vec<_> = findings
            .iter()
            .map(|f| match &f.result {
                Ok(detail) if f.is_unsafe => json!({"check": f.part, "ok": true, "unsafe": true, "detail": detail}),
                Ok(detail) => json!({"check": f.part, "ok": true, "detail": detail}),
                Err(problem) => json!({"check": f.part, "ok": false, "detail": problem.to_string()}),
            })
            .collect();
        output.value(&json!({"checks": checks}));
        return;
    }
    for finding in findings {
        match &finding.result {
            Ok(detail) => {
                let state = if finding.is_unsafe { "WARN" } else { "ok" };
                output.line(&format!("{state:5} {:9} {detail}", finding.part));
            }
            Err(problem) => output.line(&format!("FAIL  {:9} {problem}", finding.part)),
        }
    }
}

/// Reports each unsafe setting. The server runs with an unsafe setting, so it is a warning and not a failed check.
async fn safety(
    file: Option<&Path>,
    config: &Config,
    registry: Option<Arc<Registry>>,
    repaired: Result<Vec<PathBuf>, Failure>,
) -> Vec<Finding> {
    let found = async {
        let repaired = repaired?;
        let store = wiring::open_store(config)?;
        let unnamed_tenants = tenants::unnamed_tenants_with_keys(&config.tenants, store.as_ref()).await?;
        Ok::<_, Failure>(safety::unsafe_settings(&Installation {
            config,
            config_file: file,
            registry: registry.as_deref(),
            keys_required: wiring::keys_required(config, store.as_ref()).await?,
            has_stored_keys: access::keys::any(store.as_ref()).await?,
            unnamed_tenants: &unnamed_tenants,
            repaired: &repaired,
        }))
    };
    match found.await {
        Ok(found) if found.is_empty() => vec![Finding::new("safety", Ok("no unsafe setting was found".to_owned()))],
        Ok(found) => found
            .into_iter()
            .map(|found| Finding {
                is_unsafe: true,
                ..Finding::new("safety", Ok(format!("{} {}", found.name, found.danger)))
            })
            .collect(),
        Err(failure) => vec![Finding::new("safety", Err(failure))],
    }
}

/// Reports the offered catalogs, and each file that cannot be offered.
fn catalog_findings(loaded: &Result<Catalogs, Failure>) -> Vec<Finding> {
    let finding = |result| Finding::new("catalogs", result);
    let catalogs = match loaded {
        Ok(catalogs) => catalogs,
        Err(failure) => return vec![finding(Err(Failure::Found(failure.to_string())))],
    };
    let registry = catalogs.registry();
    let names: Vec<&str> = registry.iter().map(|c| c.id.as_str()).collect();
    let replaced: String = catalogs.replaced().map(|change| format!("; {change}")).collect();
    let offered = finding(Ok(format!("{} ({}){replaced}", names.len(), names.join(", "))));
    let problems = catalogs.problems().iter().map(|problem| finding(Err(Failure::Found(problem.to_string()))));
    std::iter::once(offered).chain(problems).collect()
}

async fn storage(config: &Config) -> Result<String, Failure> {
    let store = wiring::open_store(config)?;
    store.ping().await.map_err(session::Error::from)?;
    Ok(format!("the database {} is writable", config.database.display()))
}

/// Writes, lists, reads and removes a blob. The content is random, so that no other blob is removed.
async fn blobs(config: &Config) -> Result<String, Failure> {
    let blobs = wiring::open_blobs(config)?;
    let probe = format!("tokamak doctor {:?}", SystemEntropy.bytes());
    let digest = blobs.put(probe.as_bytes()).await.map_err(session::Error::from)?;
    let read = blobs.get(&digest).await.map_err(session::Error::from);
    blobs.list(None, 1).await.map_err(session::Error::from)?;
    let removed = blobs.delete(&digest, Duration::ZERO).await.map_err(session::Error::from)?;
    read?;
    if !removed {
        return Err(Failure::Found(format!(
            "{}: the test blob could not be removed, so `tokamak gc` could not remove blobs; allow the server to delete there",
            config.blobs
        )));
    }
    Ok(format!("blobs in {} can be written, read and removed", config.blobs))
}

async fn port(config: &Config) -> Result<String, Failure> {
    // Whether a key exists is known only from the store, as at the start of a server.
    if !config.listen.is_loopback() && !wiring::keys_required(config, wiring::open_store(config)?.as_ref()).await? {
        return Err(Failure::NotLoopback(config.listen));
    }
    let free = wiring::bind_listener(config.listen, config.port).await?;
    drop(free);
    Ok(format!("{}:{} is free", config.listen, config.port))
}

/// Runs a program on the demo API, through all layers.
async fn demo(config: &Config, stop: &CancellationToken) -> Result<String, Failure> {
    // The program runs on a temporary data folder, because a session in the user's data folder would take one of the user's slots.
    let scratch = tempfile::tempdir().map_err(Failure::Scratch)?;
    let config = Config {
        data: scratch.path().to_owned(),
        database: scratch.path().join(store::sqlite::FILE_NAME),
        blobs: BlobsConfig::folder(scratch.path()),
        catalogs: Vec::new(),
        ..config.clone()
    };
    let service = wiring::build_app(&config, None, stop).await?.app.service().clone();
    let caller = super::demo::caller();
    let seeds = vec![session::SeedRequest::all("demo", "Project")];
    let open = session::OpenRequest::new("tokamak doctor", seeds);
    let opened = service.open(&caller, &open).await?;
    let program = "Project[key]".to_owned();
    let run = session::RunRequest {
        session: opened.session.to_string(),
        program: Some(program),
        ..session::RunRequest::default()
    };
    let answer = service.run(&caller, &run).await?;
    let ran =
        answer.finished().ok_or_else(|| Failure::Found("the run on the demo API did not end in time".to_owned()))?;
    match ran.outcome.returns.first().map(|r| &r.result) {
        Some(Ok(rows)) => Ok(format!("the demo API answered with {} projects", rows.rows.len())),
        Some(Err(error)) => Err(Failure::Found(error.to_string())),
        None => Err(Failure::Found("the run on the demo API returned no rows".to_owned())),
    }
}

/// Decrypts every secret of the encrypted store.
fn check_secret_store(store: &SecretStore) -> Result<String, Failure> {
    Ok(match store.check()? {
        None => "there is no encrypted store; `tokamak secret set NAME` makes one".to_owned(),
        Some(1) => "the encrypted store opens, 1 secret".to_owned(),
        Some(count) => format!("the encrypted store opens, {count} secrets"),
    })
}

/// Checks whether each secret that a catalog names is set, and bound to the origin that receives it.
fn check_catalog_secrets(config: &Config, registry: &Registry, store: Arc<SecretStore>) -> Vec<Finding> {
    let kept = wiring::operator_secrets(config, store);
    let tenant = TenantId::local();
    let used = registry.iter().flat_map(|catalog| {
        let uses = catalog.auth.iter().flat_map(|auth| wiring::secret_uses(auth, &catalog.origin));
        uses.map(move |(name, origin)| (catalog, name, origin))
    });
    used.map(|(catalog, name, origin)| {
        let id = &catalog.id;
        let result = match kept.find_for(&tenant, name, origin) {
            Ok(_) => Ok(format!("{name} is set and bound to {origin}")),
            Err(Error::NotSet { .. }) if catalog.anonymous => {
                Ok(format!("{name} is not set, so {id} is called without credentials and can read only public data"))
            }
            // A missing secret of a shipped catalog is not a failure, because no user has the secrets of all shipped catalogs.
            Err(Error::NotSet { .. }) if shipped::is_shipped(id) => {
                Ok(format!("{name} is not set, so {id} cannot be called"))
            }
            Err(problem) => Err(Failure::Found(format!("{id}: {problem}"))),
        };
        Finding::new("secret", result)
    })
    .collect()
}

/// Checks whether the secrets that the rules of `js.fetch` name are set and bound, for the first tenant of each rule.
fn check_fetch_secrets(config: &Config, store: Arc<SecretStore>) -> Vec<Finding> {
    let kept = wiring::operator_secrets(config, store);
    let mut findings = Vec::new();
    for rule in &config.js.fetch {
        let tenant = wiring::rule_tenant(rule);
        for (name, origin) in rule.auth.iter().flat_map(|auth| wiring::secret_uses(auth, &rule.origin)) {
            let result = match kept.find_for(&tenant, name, origin) {
                Ok(_) => Ok(format!("{name} is set; `fetch` uses it for {}", rule.origin)),
                Err(problem) => Err(Failure::Found(format!("the rule of js.fetch for {}: {problem}", rule.origin))),
            };
            findings.push(Finding::new("secret", result));
        }
    }
    findings
}

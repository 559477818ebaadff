//! `tokamak serve`: runs the server until a signal stops it.
//! Invariants: the first line on standard error begins with `ready ` and is printed when the server can answer requests. After SIGTERM or
//! SIGINT the server waits until running calls end, for the drain time at most, and its exit code is 0.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ports::{Store, blobs};
use session::Service;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{catalog, mcp_config};
use crate::args::{ServeArgs, ToolSetArg};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::ports::SECRETS_KEY;
use crate::wiring::{self, WiredApp};
use crate::{background, log, tenants};

/// The longest time that the start of the server waits for an answer of remote storage.
const BLOBS_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn run(config_file: Option<&Path>, args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    let mut config = Config::read(config_file, &args.settings)?;
    log::init("info,rmcp=warn,object_store=warn");
    for source in &args.openapi {
        config.imported.push(Arc::new(catalog::draft(config_file, source).await?.catalog));
    }
    if args.stdio { serve_stdio(&config, args, output).await } else { serve_http(&config, args, output).await }
}

async fn serve_stdio(config: &Config, args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    // This token is cancelled after the last call, because running calls still need the demo API and the traces during the drain.
    let ended = CancellationToken::new();
    let WiredApp { app, catalogs, store, repaired } = wiring::build_app(config, None, &ended).await?;
    let service = app.service().clone();
    let unreachable = check_blobs(config, &service).await?;
    stop_on_signal(stop.clone());
    output.notice(&ready_line("stdio", config, service.registry().len()));
    warn_at_start(config, &service, store.as_ref(), &repaired, unreachable).await?;
    catalogs.watch(service.clone(), stop.clone());
    let background = background::start(&service, config, &stop, &ended)?;
    let drain = Duration::from_secs(config.drain_seconds);
    let served = server::serve_stdio(app, mcp_options(config, args), drain, stop).await;
    ended.cancel();
    background.finish().await;
    Ok(served?)
}

async fn serve_http(config: &Config, args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    // This check comes before the data folder is opened, so that a refused start makes no data folder.
    if !config.listen.is_loopback() && !wiring::may_have_keys(config) {
        return Err(Failure::NotLoopback(config.listen));
    }
    let stop = CancellationToken::new();
    // This token is cancelled after the last call, because running calls still need the demo API and the traces during the drain.
    let ended = CancellationToken::new();
    // The port is opened first, because a taken port is the most frequent mistake. Requests wait until `server::serve` answers them.
    let listener = wiring::bind_listener(config.listen, config.port).await?;
    let address =
        listener.local_addr().map_err(|cause| Failure::Listen { address: config.listen, port: config.port, cause })?;
    let WiredApp { app, catalogs, store, repaired } = wiring::build_app(config, Some(address), &ended).await?;
    let service = app.service().clone();
    let unreachable = check_blobs(config, &service).await?;
    if !app.keys_required() && !config.listen.is_loopback() {
        return Err(Failure::NotLoopback(config.listen));
    }
    stop_on_signal(stop.clone());
    let url = format!("http://{address}");
    output.notice(&ready_line(&url, config, service.registry().len()));
    warn_at_start(config, &service, store.as_ref(), &repaired, unreachable).await?;
    catalogs.watch(service.clone(), stop.clone());
    if args.connect_help {
        let hosts = mcp_config::all_hosts(&format!("{url}/mcp"));
        output.notice(&format!("\nConnect a host:\n\n{hosts}\n\nStop with Ctrl-C."));
    }
    let background = background::start(&service, config, &stop, &ended)?;
    if config.auth.is_none() && !app.keys_required() {
        tokio::spawn(background::require_keys_after_the_first(app.clone(), stop.clone()));
    }
    let options = server::HttpOptions {
        hosts: config.hosts.clone(),
        drain: Duration::from_secs(config.drain_seconds),
        mcp: mcp_options(config, args),
    };
    server::serve(listener, app, options, stop).await?;
    ended.cancel();
    background.finish().await;
    tracing::info!("the server has stopped");
    Ok(())
}

/// Sends a request to remote storage. A failure that lasts, such as a mistake in the settings, is an error. For storage that does not
/// answer, the function returns a text to log, because the storage may answer later.
async fn check_blobs(config: &Config, service: &Service) -> Result<Option<String>, Failure> {
    if !config.blobs.is_remote() {
        return Ok(None);
    }
    let problem = match tokio::time::timeout(BLOBS_TIMEOUT, service.check_blobs()).await {
        Ok(Ok(())) => return Ok(None),
        Ok(Err(session::Error::Blobs(blobs::Error::Remote(remote)))) if !remote.problem.is_lasting() => {
            remote.to_string()
        }
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => format!("the blob storage {} does not answer", config.blobs),
    };
    Ok(Some(problem))
}

/// Logs warnings for the operator. The caller has printed the ready line before, because that must be the first line.
async fn warn_at_start(
    config: &Config,
    service: &Service,
    store: &dyn Store,
    repaired: &[PathBuf],
    unreachable_blobs: Option<String>,
) -> Result<(), Failure> {
    if let Some(problem) = unreachable_blobs {
        tracing::warn!("{problem}; calls that need blobs fail until the storage answers again");
    }
    for folder in repaired {
        tracing::warn!(folder = %folder.display(), "other users of this machine could read this folder until now; their permissions were removed");
    }
    if config.secrets_key.is_none() && config.data.join(store::secrets::FILE_NAME).exists() {
        tracing::warn!("the encrypted secrets cannot be read, because no key is set; set {SECRETS_KEY}");
    }
    // An entry that matches nothing gives a tenant fewer permissions than the operator intended, and the errors of calls do not show why.
    for line in tenants::unmatched_entries(&config.tenants, &service.registry()) {
        tracing::warn!("{line}; this entry of the settings allows nothing");
    }
    for tenant in tenants::unnamed_tenants_with_keys(&config.tenants, store).await? {
        tracing::warn!("{}", tenants::unnamed_tenant_problem(&tenant));
    }
    // A secret that is set and not bound is often one that an older version sent without a binding.
    for problem in wiring::unbound_secrets(config, &service.registry()) {
        tracing::warn!("{problem}");
    }
    Ok(())
}

fn mcp_options(config: &Config, args: &ServeArgs) -> server::McpOptions {
    let tools = match args.tools {
        Some(ToolSetArg::Core) => server::ToolSet::Core,
        Some(ToolSetArg::All) => server::ToolSet::All,
        None => config.tools,
    };
    server::McpOptions { tools, session_name: args.session_id.clone(), connections: config.connections.clone() }
}

fn ready_line(place: &str, config: &Config, catalogs: usize) -> String {
    format!("ready {place} (data: {}, catalogs: {catalogs})", config.data.display())
}

/// Starts a task that cancels `stop` at SIGTERM or SIGINT. The signal handlers are installed before the function returns, so that a signal
/// right after the ready line is not lost.
fn stop_on_signal(stop: CancellationToken) {
    // If the handlers cannot be installed, a signal ends the process at once, without a drain.
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("the server is stopping: it refuses new calls and waits for running calls");
        stop.cancel();
    });
}

//! `tokamak serve`: runs the server until it is told to stop.
//! Invariant: the first line on standard error begins with `ready ` and is printed when the server can answer. SIGTERM and SIGINT let
//! running calls finish, and then the exit code is 0.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ports::blobs;
use session::Service;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{catalog, mcp_config};
use crate::args::{ServeArgs, ToolSetArg};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::wiring::{self, Wired};
use crate::{background, log, tenants};

/// The longest time that a start waits for remote storage to answer.
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
    // Cancelled after the last call: the demo API and the traces must outlive the calls that are still allowed to finish.
    let ended = CancellationToken::new();
    let Wired { app, catalogs } = wiring::app(config, &ended).await?;
    let service = app.service().clone();
    let unreachable = check_blobs(config, &service).await?;
    stop_on_signal(stop.clone());
    output.notice(&ready_line("stdio", config, service.registry().len()));
    warn_at_start(config, &service, unreachable);
    catalogs.watch(service.clone(), stop.clone());
    let background = background::start(&service, config, &stop, &ended)?;
    let drain = Duration::from_secs(config.drain_seconds);
    let served = server::serve_stdio(app, mcp_options(config, args), drain, stop).await;
    ended.cancel();
    background.finish().await;
    Ok(served?)
}

async fn serve_http(config: &Config, args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    // Checked before the data folder is opened, so that a refused start leaves nothing behind.
    if !config.listen.is_loopback() && !wiring::may_have_keys(config) {
        return Err(Failure::NotLoopback(config.listen));
    }
    let stop = CancellationToken::new();
    // Cancelled after the last call: the demo API and the traces must outlive the calls that are still allowed to finish.
    let ended = CancellationToken::new();
    // The port is opened first, because a taken port is the likeliest mistake. No request is answered before `server::serve`.
    let listener = wiring::listen(config.listen, config.port).await?;
    let Wired { app, catalogs } = wiring::app(config, &ended).await?;
    let service = app.service().clone();
    let unreachable = check_blobs(config, &service).await?;
    if !app.keys_required() && !config.listen.is_loopback() {
        return Err(Failure::NotLoopback(config.listen));
    }
    stop_on_signal(stop.clone());
    let address =
        listener.local_addr().map_err(|cause| Failure::Listen { address: config.listen, port: config.port, cause })?;
    let url = format!("http://{address}");
    output.notice(&ready_line(&url, config, service.registry().len()));
    warn_at_start(config, &service, unreachable);
    catalogs.watch(service.clone(), stop.clone());
    if args.connect_help {
        let hosts = mcp_config::all_hosts(&format!("{url}/mcp"));
        output.notice(&format!("\nConnect a host:\n\n{hosts}\n\nStop with Ctrl-C."));
    }
    let background = background::start(&service, config, &stop, &ended)?;
    let options = server::HttpOptions {
        hosts: config.hosts.clone(),
        drain: Duration::from_secs(config.drain_seconds),
        mcp: mcp_options(config, args),
    };
    server::serve(listener, app, options, stop).await?;
    ended.cancel();
    background.finish().await;
    tracing::info!("stopped");
    Ok(())
}

/// Asks remote storage for an answer. A mistake in the settings is an error, because it lasts; storage that does not answer may come
/// back, so that is only returned as a text to log.
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
        Err(_) => format!("{} does not answer", config.blobs),
    };
    Ok(Some(problem))
}

/// Logs what the operator should know. It comes after the ready line, which must be the first line.
fn warn_at_start(config: &Config, service: &Service, unreachable_blobs: Option<String>) {
    if let Some(problem) = unreachable_blobs {
        tracing::warn!("{problem}; calls that need blobs fail until the storage answers again");
    }
    // A mistake in a list of a tenant allows less than the operator meant, and no call would say why.
    for line in tenants::unmatched_entries(&config.tenants, &service.registry()) {
        tracing::warn!("{line}; the entry allows nothing");
    }
}

fn mcp_options(config: &Config, args: &ServeArgs) -> server::McpOptions {
    let tools = match args.tools {
        Some(ToolSetArg::Core) => server::ToolSet::Core,
        Some(ToolSetArg::All) => server::ToolSet::All,
        None => config.tools,
    };
    server::McpOptions { tools, session_name: args.session_id.clone() }
}

fn ready_line(place: &str, config: &Config, catalogs: usize) -> String {
    format!("ready {place} (data: {}, catalogs: {catalogs})", config.data.display())
}

/// Cancels `stop` at SIGTERM or SIGINT. The handlers are in place when this returns, so that a signal right after the ready line is
/// not lost.
fn stop_on_signal(stop: CancellationToken) {
    // Without handlers a signal still ends the process, but running calls cannot finish.
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("stopping: new calls are refused, running calls may finish");
        stop.cancel();
    });
}

//! `tokamak serve`: the server until it is told to stop.
//! Invariant: the first line on standard error when ready begins `ready `; SIGTERM and SIGINT drain and exit 0.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ports::blobs;
use session::Service;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{catalog, mcp_config};
use crate::args::{Serve, Tools};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::wiring::{self, Wired};
use crate::{beside, log, tenants};

/// A start does not wait longer for storage over a network.
const LOOK_AT_BLOBS: Duration = Duration::from_secs(5);
/// Who still waits for a run this long before the time to finish is over is told how it stands.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LOOK_FOR_RUNS: Duration = Duration::from_secs(5);

pub async fn run(file: Option<&Path>, args: &Serve, output: &Output) -> Result<(), Failure> {
    let mut config = Config::read(file, &args.settings)?;
    log::init("info,rmcp=warn,object_store=warn");
    for source in &args.openapi {
        config.imported.push(Arc::new(catalog::draft(file, source).await?.catalog));
    }
    let mcp = mcp_options(&config, args);
    let stop = CancellationToken::new();
    // The demo API serves the calls that are let finish, so it ends after them.
    let ended = CancellationToken::new();
    if args.stdio {
        let Wired { app, catalogs } = wiring::app(&config, &ended).await?;
        let service = app.service().clone();
        let away = look_at_blobs(&config, &service).await?;
        stop_on_signal(stop.clone());
        output.notice(&ready("stdio", &config, service.registry().len()));
        warn(&config, &service, away);
        catalogs.watch(service.clone(), stop.clone());
        attend(&config, &service, &stop);
        let beside = beside::start(&service, &config, &ended)?;
        let served = server::serve_stdio(app, mcp, Duration::from_secs(config.drain_seconds), stop.clone()).await;
        ended.cancel();
        beside.finish().await;
        return Ok(served?);
    }
    if !config.listen.is_loopback() && !wiring::may_have_keys(&config) {
        return Err(Failure::NotLoopback(config.listen));
    }
    // The port first: a taken one is the likeliest mistake, and nothing was opened yet. Nobody is answered before the rest.
    let listener = wiring::listen(config.listen, config.port).await?;
    let Wired { app, catalogs } = wiring::app(&config, &ended).await?;
    let service = app.service().clone();
    let away = look_at_blobs(&config, &service).await?;
    if !app.keys_required() && !config.listen.is_loopback() {
        return Err(Failure::NotLoopback(config.listen));
    }
    stop_on_signal(stop.clone());
    let address =
        listener.local_addr().map_err(|cause| Failure::Listen { address: config.listen, port: config.port, cause })?;
    let url = format!("http://{address}");
    output.notice(&ready(&url, &config, service.registry().len()));
    warn(&config, &service, away);
    catalogs.watch(service.clone(), stop.clone());
    attend(&config, &service, &stop);
    if args.connect_help {
        output.notice(&format!("\nConnect a host:\n\n{}\n\nStop with Ctrl-C.", mcp_config::all(&format!("{url}/mcp"))));
    }
    let beside = beside::start(&service, &config, &ended)?;
    let options = server::HttpOptions { hosts: config.hosts, drain: Duration::from_secs(config.drain_seconds), mcp };
    server::serve(listener, app, options, stop).await?;
    ended.cancel();
    beside.finish().await;
    tracing::info!("stopped");
    Ok(())
}

/// A mistake in the settings is told before anyone is served; storage that is only away may come back. What to say of that.
async fn look_at_blobs(config: &Config, service: &Service) -> Result<Option<String>, Failure> {
    if !config.blobs.is_remote() {
        return Ok(None);
    }
    let away = match tokio::time::timeout(LOOK_AT_BLOBS, service.blobs_answer()).await {
        Ok(Ok(())) => return Ok(None),
        Ok(Err(session::Error::Blobs(blobs::Error::Remote(remote)))) if !remote.problem.is_lasting() => {
            remote.to_string()
        }
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => format!("{} does not answer", config.blobs),
    };
    Ok(Some(away))
}

/// After the ready line, which is the first.
fn warn(config: &Config, service: &Service, away: Option<String>) {
    if let Some(away) = away {
        tracing::warn!("{away}; what needs blobs fails until it is back");
    }
    warn_of_tenants(config, &service.registry());
}

/// What is done for runs of JavaScript beside serving.
fn attend(config: &Config, service: &Arc<Service>, stop: &CancellationToken) {
    resume(config, service, stop.clone());
    tell_who_waits(config, service, stop.clone());
}

/// Who waits for a run that takes longer than the server has left is told how it stands, before the time to finish is over. Not
/// at once: while someone waits the server stays, and a request that the run has sent may still be answered.
fn tell_who_waits(config: &Config, service: &Arc<Service>, stop: CancellationToken) {
    let drain = Duration::from_secs(config.drain_seconds);
    let wait = drain.saturating_sub(LAST_WORDS.min(drain / 2));
    // It keeps nobody: what ends with the service ends when the server does.
    let service = Arc::downgrade(service);
    tokio::spawn(async move {
        stop.cancelled().await;
        tokio::time::sleep(wait).await;
        if let Some(service) = service.upgrade() {
            service.release_waiters();
        }
    });
}

/// Runs of JavaScript whose process died go on here: at once, and whenever another process on this data folder dies.
fn resume(config: &Config, service: &Arc<Service>, stop: CancellationToken) {
    let (tenants, service) = (tenants::all(&config.tenants), service.clone());
    tokio::spawn(async move {
        loop {
            match service.resume_js(&tenants).await {
                Ok(0) => {}
                Ok(taken) => tracing::info!(taken, "runs of JavaScript were taken up again"),
                Err(error) => tracing::warn!(%error, "runs of JavaScript could not be looked for"),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_FOR_RUNS) => {}
                () = stop.cancelled() => return,
            }
        }
    });
}

fn mcp_options(config: &Config, args: &Serve) -> server::McpOptions {
    let tools = match args.tools {
        Some(Tools::Core) => server::ToolSet::Core,
        Some(Tools::All) => server::ToolSet::All,
        None => config.tools,
    };
    server::McpOptions { tools, session_name: args.session_id.clone() }
}

fn ready(place: &str, config: &Config, catalogs: usize) -> String {
    format!("ready {place} (data: {}, catalogs: {catalogs})", config.data.display())
}

/// A mistake in a list allows less than was meant, and nobody would be told.
fn warn_of_tenants(config: &Config, registry: &::catalog::Registry) {
    for line in tenants::idle(&config.tenants, registry) {
        tracing::warn!("{line}; the entry allows nothing");
    }
}

/// Listens from now on: a signal that comes right after the ready line is heard.
fn stop_on_signal(stop: CancellationToken) {
    // Without a handler the signal still ends the process, only less gracefully.
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("stopping: no new work, running work may finish");
        stop.cancel();
    });
}

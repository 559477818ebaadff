//! Runs the command that the command line names. Each command has its own file or folder in this folder.
//! Invariant: a command prints through `Output`. It uses sessions through `App::call` with the requests of `app::calls`, like the MCP
//! tools and the HTTP routes.

mod catalog;
mod debug;
mod demo;
mod discover;
mod doctor;
mod execution;
mod explain;
mod fmt;
mod heap;
mod js;
mod mcp_config;
mod secret;
mod serve;
mod session;
mod token;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use app::App;
use clap::CommandFactory;
use tokio_util::sync::CancellationToken;

use crate::args::{Cli, Command, Settings};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, wiring};

pub async fn run(cli: Cli, output: &Output) -> Result<(), Failure> {
    let config = cli.config.as_deref();
    match cli.command {
        Command::Serve(args) => serve::run(config, &args, output).await,
        Command::Demo => demo::run(output).await,
        Command::Doctor(settings) => doctor::run(config, &settings, output).await,
        Command::McpConfig(args) => mcp_config::run(&args, output),
        Command::Secret(args) => secret::run(config, &args, output),
        Command::Token(args) => token::run(config, &args, output).await,
        Command::Catalog(command) => catalog::run(config, &command, output).await,
        Command::Discover(args) => discover::run(config, &args, output),
        Command::Js(args) => js::run(config, &args, output).await,
        Command::Execution(args) => execution::run(config, &args, output).await,
        Command::Heap(args) => heap::run(config, &args, output).await,
        Command::Context(args) => session::context(config, &args, output).await,
        Command::Plan(args) => session::plan(config, &args, output).await,
        Command::Run(args) => session::run(config, &args, output).await,
        Command::Session(args) => session::session(config, &args, output).await,
        Command::Artifact(args) => session::artifact(config, &args, output).await,
        Command::Gc(args) => session::gc(config, &args, output).await,
        Command::Debug(args) => debug::run(&args, output),
        Command::Fmt(args) => fmt::run(&args, output),
        Command::Explain { code } => explain::run(&code, output),
        Command::Completions { shell } => {
            print_completions(shell, output);
            Ok(())
        }
    }
}

/// `tokamak completions`: prints the completion script for a shell, which clap generates from the arguments of all commands.
fn print_completions(shell: clap_complete::Shell, output: &Output) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tokamak", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end());
}

/// Builds an app on the data folder, runs `task` with it, and then writes the traces of the calls of this task.
async fn with_app<T, F: Future<Output = Result<T, Failure>>>(
    config_file: Option<&Path>,
    settings: Settings,
    task: impl FnOnce(Arc<App>) -> F,
) -> Result<T, Failure> {
    log::init("error");
    let stop = CancellationToken::new();
    let app = open_app(config_file, &settings, &stop).await?;
    let result = task(app.clone()).await;
    let written = app.service().write_traces().await;
    stop.cancel();
    // If the task and the writing of traces both failed, the failure of the task is reported.
    let value = result?;
    written?;
    Ok(value)
}

/// Builds an app on the data folder. Unless the settings have no demo API, this API is served until `stop` is cancelled.
async fn open_app(
    config_file: Option<&Path>,
    settings: &Settings,
    stop: &CancellationToken,
) -> Result<Arc<App>, Failure> {
    let config = Config::read(config_file, settings)?;
    Ok(wiring::build_app(&config, None, stop).await?.app)
}

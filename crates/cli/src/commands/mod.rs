//! One command, one file; the match is only a table.
//! Invariant: a command talks to the world through `Output` and to sessions through `session::Service`.

mod catalog;
mod completions;
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

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::output::Output;

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
        Command::Completions { shell } => completions::run(shell, output),
    }
}

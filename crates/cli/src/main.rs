//! The binary `tokamak`: arguments, configuration, wiring, and one file per command.
//!
//! Invariants:
//! - All wiring is here: only this crate and `testkit` name an adapter.
//! - Settings are one `Config`, read once; only this crate sees the environment.
//! - Human output by default, `--json` everywhere; errors on standard error with exit code 1 (failed), 2 (usage), 3 (not found).

mod args;
mod beside;
mod blobs;
mod catalogs;
mod commands;
mod config;
mod failure;
mod log;
mod memory;
mod otlp;
mod output;
mod ports;
mod shipped;
mod tenants;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::output::Output;

/// A call makes some thousands of small allocations on one thread and frees many of them on another: with the C library's
/// allocator they were a sixth of what a call costs (docs/benchmarks.md, "Sessions").
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return output::usage(&refusal),
    };
    let output = Output::new(cli.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return output.fail(&failure::Failure::Runtime(cause)),
    };
    let ended = runtime.block_on(commands::run(cli, &output));
    // A read of standard input cannot be interrupted; it must not keep a stopped process alive.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}

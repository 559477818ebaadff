//! The binary `tokamak`: arguments, configuration, wiring, and one file for each command.
//!
//! Invariants:
//! - Only this crate and `testkit` depend on adapter crates, so all wiring is here.
//! - The settings are one `Config`, which is read once. No other crate reads environment variables.
//! - Every command prints text for people, or JSON with `--json`. Errors go to standard error; the exit code is 1 (failed),
//!   2 (wrong arguments or settings) or 3 (not found).

mod args;
mod background;
mod blobs;
mod catalogs;
mod commands;
mod config;
mod failure;
mod log;
mod otlp;
mod output;
mod ports;
mod safety;
mod shipped;
mod tenants;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::output::Output;

/// The allocator of the process. One call makes thousands of small allocations on one thread, and another thread frees many of them. With
/// the allocator of the C library, these allocations took a sixth of the time of a call (docs/benchmarks.md, "Sessions").
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::print_usage_error(&error),
    };
    let output = Output::new(cli.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return output.fail(&failure::Failure::Runtime(cause)),
    };
    let result = runtime.block_on(commands::run(cli, &output));
    // The shutdown does not wait for blocking tasks, because a blocking read of standard input cannot be interrupted.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}

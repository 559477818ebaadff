//! `tokamak completions`: shell completions on standard output.
//! Invariant: made from the command line's own description.

use clap::CommandFactory;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::Output;

pub fn run(shell: clap_complete::Shell, output: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tokamak", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

//! The command line of `tokamak catalog`.
//! Invariant: where FILE and ID are both possible, what has a `/`, ends in `.yaml` or `.yml`, or is `-`, is a file.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List the catalogs that this installation offers, and whether their secrets are set
    List(Folders),
    /// Check catalog files; says what is wrong, where, and what to write
    Check(CatalogCheck),
    /// Print what a model is taught of a catalog, what that costs in tokens, and its entities as a graph
    Show(CatalogShow),
    /// Call every read of a catalog at its origin and say how the answers fit; writes are never called
    Test(CatalogTest),
    /// Print the JSON Schema of the catalog format, for editors
    Schema,
}

/// Where catalogs are found, beside the settings file.
#[derive(Debug, Clone, Default, Args)]
pub struct Folders {
    /// Load every catalog (*.yaml) in this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Leave the demo API and its catalog out
    #[arg(long)]
    pub no_demo: bool,
}

#[derive(Debug, Args)]
pub struct CatalogCheck {
    /// The files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CatalogShow {
    /// A catalog's file, or the id of one that `tokamak catalog list` names
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Teach only this entity; may be given several times
    #[arg(long, value_name = "ENTITY")]
    pub entity: Vec<String>,
    /// Draw the graph in this form; without -o nothing else is printed
    #[arg(long, value_name = "FORM")]
    pub graph: Option<Picture>,
    /// Write the graph to this file, and the rest to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub folders: Folders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// Text that Markdown viewers draw
    Mermaid,
    /// A picture
    Svg,
}

#[derive(Debug, Args)]
pub struct CatalogTest {
    /// A catalog's file, or the id of one that `tokamak catalog list` names
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Call only this capability; may be given several times
    #[arg(long, value_name = "CAPABILITY")]
    pub capability: Vec<String>,
    /// A value for a parameter of every capability, or as `capability.name=value` of one; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// What to do about writes
    #[arg(long, value_enum, default_value_t = Writes::Never)]
    pub writes: Writes,
    /// Make at most so many calls
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: u32,
    /// Wait at most so long for one answer
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    #[command(flatten)]
    pub folders: Folders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Writes {
    /// They are not called
    Never,
}

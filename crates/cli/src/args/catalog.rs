//! The command line of `tokamak catalog`.
//! Invariant: where FILE and ID are both possible, what has a `/`, ends in `.yaml` or `.yml`, or is `-`, is a file.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List the catalogs that this installation offers, and whether their secrets are set
    List(CatalogList),
    /// Check catalog files; says what is wrong, where, and what to write
    Check(CatalogCheck),
    /// Print what a model is taught of a catalog, what that costs in tokens, and its entities as a graph
    Show(CatalogShow),
    /// Call every read of a catalog at its origin and say how the answers fit; writes are never called
    Test(CatalogTest),
    /// Draft a catalog from an OpenAPI or GraphQL specification; says what is mapped, what is not and why
    #[command(
        subcommand,
        after_help = "Examples:\n  tokamak catalog import openapi petstore.yaml -o petstore.catalog.yaml\n  tokamak catalog import openapi https://api.example.com/openapi.json --tag pets\n  tokamak catalog import graphql schema.graphql -o shop.yaml --strict 0.95"
    )]
    Import(ImportKind),
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
pub struct CatalogList {
    #[command(flatten)]
    pub folders: Folders,
    /// As this tenant of the settings sees them
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
}

#[derive(Debug, Args)]
pub struct CatalogCheck {
    /// The files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CatalogShow {
    /// Write slots so, instead of as the settings say
    #[arg(long)]
    pub slots: Option<Slots>,
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

#[derive(Debug, Subcommand)]
pub enum ImportKind {
    /// From OpenAPI 3.0, 3.1 or Swagger 2.0, in JSON or YAML
    Openapi(CatalogImport),
    /// From a GraphQL schema: SDL, an introspection result, or the URL of either
    Graphql(CatalogImport),
}

#[derive(Debug, Args)]
pub struct CatalogImport {
    /// The specification: a file, `-` for standard input, or a URL; of several files, or a folder, only a line each is printed
    #[arg(required = true, value_name = "FILE|URL")]
    pub sources: Vec<String>,
    /// Write the draft to this file; of several specifications, into this folder
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Only operations whose path or id fits; `*` stands for anything
    #[arg(long, value_name = "GLOB")]
    pub only: Option<String>,
    /// Only operations with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// The catalog's id; made from the title where it is left out
    #[arg(long, value_name = "ID")]
    pub name: Option<String>,
    /// Add what is new to the catalog that OUT already holds: nothing in it is changed, and what changed is said
    #[arg(long, requires = "output")]
    pub update: bool,
    /// Fail when less than this share of the operations is mapped, such as 0.95
    #[arg(long, value_name = "SHARE")]
    pub strict: Option<f64>,
}

/// How a table writes slots.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Slots {
    /// By name: `e1[number,title]`
    Names,
    /// By symbol: `e1[p2,p4]`
    Symbols,
}

impl From<Slots> for teach::SlotStyle {
    fn from(slots: Slots) -> Self {
        match slots {
            Slots::Names => Self::Names,
            Slots::Symbols => Self::Symbols,
        }
    }
}

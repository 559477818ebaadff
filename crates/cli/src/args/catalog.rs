//! The command line of `tokamak catalog`.
//! Invariant: if an argument may be a FILE or an ID, it is a file if it contains `/`, ends in `.yaml` or `.yml`, or is `-`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CatalogFolders;

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List the catalogs that a server with these settings offers, and whether their secrets are set
    List(CatalogListArgs),
    /// Check catalog files, and print each mistake with its place and the correction
    Check(CatalogCheckArgs),
    /// Print the table that teaches a catalog to a model, its cost in tokens, and a graph of the entities
    Show(CatalogShowArgs),
    /// Call every read of a catalog at its origin, and report how the answers fit; writes are never called
    Test(CatalogTestArgs),
    /// Draft a catalog from an OpenAPI or GraphQL specification, and report each operation that is not mapped
    #[command(
        subcommand,
        after_help = "Examples:\n  tokamak catalog import openapi petstore.yaml -o petstore.catalog.yaml\n  tokamak catalog import openapi https://api.example.com/openapi.json --tag pets\n  tokamak catalog import graphql schema.graphql -o shop.yaml --strict 0.95"
    )]
    Import(ImportKind),
    /// Print the JSON Schema of the catalog format, for editors
    Schema,
}

#[derive(Debug, Args)]
pub struct CatalogListArgs {
    #[command(flatten)]
    pub folders: CatalogFolders,
    /// List only what this tenant of the settings may use
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
}

#[derive(Debug, Args)]
pub struct CatalogCheckArgs {
    /// The catalog files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CatalogShowArgs {
    /// How the table writes slots, if not as the settings say
    #[arg(long)]
    pub slots: Option<SlotStyleArg>,
    /// The file of a catalog, or an id that `tokamak catalog list` prints
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Teach only this entity; may be given several times
    #[arg(long, value_name = "ENTITY")]
    pub entity: Vec<String>,
    /// Draw the graph in this form; without -o nothing else is printed
    #[arg(long, value_name = "FORM")]
    pub graph: Option<GraphForm>,
    /// Write the graph to this file, and everything else to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub folders: CatalogFolders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphForm {
    /// Text that Markdown viewers draw
    Mermaid,
    /// An SVG picture
    Svg,
}

#[derive(Debug, Args)]
pub struct CatalogTestArgs {
    /// The file of a catalog, or an id that `tokamak catalog list` prints
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Call only this capability; may be given several times
    #[arg(long, value_name = "CAPABILITY")]
    pub capability: Vec<String>,
    /// A value for a parameter of every capability, or of one if written `capability.name=value`; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// Whether writes are called
    #[arg(long, value_enum, default_value_t = Writes::Never)]
    pub writes: Writes,
    /// Make at most N calls
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: u32,
    /// Wait at most this long for one answer
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    #[command(flatten)]
    pub folders: CatalogFolders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Writes {
    /// Writes are not called
    Never,
}

#[derive(Debug, Subcommand)]
pub enum ImportKind {
    /// From OpenAPI 3.0, 3.1 or Swagger 2.0, in JSON or YAML
    Openapi(CatalogImportArgs),
    /// From a GraphQL schema: SDL, the result of an introspection, or the URL of either or of an endpoint
    Graphql(CatalogImportArgs),
}

#[derive(Debug, Args)]
pub struct CatalogImportArgs {
    /// The specification: a file, `-` for standard input, or a URL. For several files or a folder, one line each is printed
    #[arg(required = true, value_name = "FILE|URL")]
    pub sources: Vec<String>,
    /// Write the draft to this file; if there are several specifications, write the drafts into this folder
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Import only operations whose path or id matches; `*` stands for any characters
    #[arg(long, value_name = "GLOB")]
    pub only: Option<String>,
    /// Import only operations with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// The id of the catalog; by default it is made from the title
    #[arg(long, value_name = "ID")]
    pub name: Option<String>,
    /// Add the new operations to the catalog in OUT. Nothing in it is changed; differences are only reported
    #[arg(long, requires = "output")]
    pub update: bool,
    /// Fail if less than this share of the operations is mapped, such as 0.95
    #[arg(long, value_name = "SHARE")]
    pub strict: Option<f64>,
}

/// The forms in which a table can write slots, as values of `--slots`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SlotStyleArg {
    /// By name: `e1[number,title]`
    Names,
    /// By symbol: `e1[p2,p4]`
    Symbols,
}

impl From<SlotStyleArg> for teach::SlotStyle {
    fn from(style: SlotStyleArg) -> Self {
        match style {
            SlotStyleArg::Names => Self::Names,
            SlotStyleArg::Symbols => Self::Symbols,
        }
    }
}

//! The arguments and subcommands of `tokamak catalog`.
//! Invariant: if an argument may be a FILE or an ID, it is a file if it contains `/`, ends in `.yaml` or `.yml`, or is `-`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::CatalogFolders;

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// List the catalogs that a server would offer with these settings, and whether the secrets of each catalog are set
    List(CatalogListArgs),
    /// Check catalog files, and print each mistake with its file, line and correction
    Check(CatalogCheckArgs),
    /// Print the table that teaches a catalog to a model, its cost in tokens, and a graph of the entities
    Show(CatalogShowArgs),
    /// Call every read of a catalog at the API, and report where the answers differ from the catalog; writes are never called
    Test(CatalogTestArgs),
    /// Make a draft of a catalog from an OpenAPI or GraphQL specification, and report each operation that the draft does not cover
    #[command(
        subcommand,
        after_help = "Examples:\n  tokamak catalog import openapi petstore.yaml -o petstore.catalog.yaml\n  tokamak catalog import openapi https://api.example.com/openapi.json --tag pets\n  tokamak catalog import graphql schema.graphql -o shop.yaml --strict 0.95"
    )]
    Import(ImportKind),
    /// Print the JSON Schema of the catalog format, with which an editor can check catalog files
    Schema,
}

#[derive(Debug, Args)]
pub struct CatalogListArgs {
    #[command(flatten)]
    pub folders: CatalogFolders,
    /// List only the catalogs and capabilities that this tenant may use; NAME is that of a table [tenants.NAME] of the settings
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
}

#[derive(Debug, Args)]
pub struct CatalogCheckArgs {
    /// The catalog files to check; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CatalogShowArgs {
    /// The form in which the table writes fields and parameters; the default is `teaching.slots` of the settings
    #[arg(long)]
    pub slots: Option<SlotStyleArg>,
    /// A catalog file, or the id of a catalog as `tokamak catalog list` prints it
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Print the table of this entity only; may be given several times
    #[arg(long, value_name = "ENTITY")]
    pub entity: Vec<String>,
    /// Draw the graph of the entities in this form; without -o only the graph is printed
    #[arg(long, value_name = "FORM")]
    pub graph: Option<GraphForm>,
    /// Write the graph to this file, and print the table and its cost to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub folders: CatalogFolders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphForm {
    /// A Mermaid diagram: text that Markdown viewers show as a picture
    Mermaid,
    /// An SVG picture
    Svg,
}

#[derive(Debug, Args)]
pub struct CatalogTestArgs {
    /// A catalog file, or the id of a catalog as `tokamak catalog list` prints it
    #[arg(value_name = "FILE|ID")]
    pub catalog: String,
    /// Call only this capability; may be given several times
    #[arg(long, value_name = "CAPABILITY")]
    pub capability: Vec<String>,
    /// The value of a parameter: NAME=VALUE for every capability, CAPABILITY.NAME=VALUE for one; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// Whether the test calls writes
    #[arg(long, value_enum, default_value_t = Writes::Never)]
    pub writes: Writes,
    /// Make at most N calls to the API
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub calls: u32,
    /// Wait at most this long for the answer to one request
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    #[command(flatten)]
    pub folders: CatalogFolders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Writes {
    /// The test calls reads only
    Never,
}

#[derive(Debug, Subcommand)]
pub enum ImportKind {
    /// Make the draft from an OpenAPI 3.0, OpenAPI 3.1 or Swagger 2.0 specification, in JSON or YAML
    Openapi(CatalogImportArgs),
    /// Make the draft from a GraphQL schema: SDL, an introspection result, the URL of one of these, or the URL of a GraphQL endpoint
    Graphql(CatalogImportArgs),
}

#[derive(Debug, Args)]
pub struct CatalogImportArgs {
    /// The specification: a file, `-` for standard input, or a URL; if several files or a folder are given, the report has one line for each specification
    #[arg(required = true, value_name = "FILE|URL")]
    pub sources: Vec<String>,
    /// Write the draft to this file; if there are several specifications, write the drafts into this folder
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Import only operations whose path or id matches this pattern; `*` matches any characters
    #[arg(long, value_name = "GLOB")]
    pub only: Option<String>,
    /// Import only operations with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// The id of the catalog; the default is made from the title of the specification
    #[arg(long, value_name = "ID")]
    pub name: Option<String>,
    /// Add new operations to the catalog in the file OUT, and only report operations that were changed or removed
    #[arg(long, requires = "output")]
    pub update: bool,
    /// Fail if the draft covers less than this share of the operations, such as 0.95
    #[arg(long, value_name = "SHARE")]
    pub strict: Option<f64>,
}

/// The forms in which a table can write fields and parameters, as values of `--slots`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SlotStyleArg {
    /// Write each field and parameter by its name: `e1[number,title]`
    Names,
    /// Write each field and parameter by its symbol: `e1[p2,p4]`
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

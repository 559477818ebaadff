//! Any OpenAPI or GraphQL API as a draft of a catalog: bytes in, text of a catalog and a report out.
//!
//! Invariants:
//! - No I/O, no async; no input makes it panic, and no input costs more than its size is worth.
//! - A draft that comes out loads with `catalog::read` as it is; what had to be left out for that is in the report, with why.

mod api;
mod draft;
mod graphql;
mod map;
mod names;
mod report;
mod spec;
mod update;

pub use report::{Guess, Report, Unmapped};
pub use update::{Update, update};

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("this is {found} bytes long; a specification has at most {most}")]
    TooLarge { found: usize, most: usize },
    #[error("this is not UTF-8 text")]
    NotText,
    #[error("this is not JSON: {0}")]
    NotJson(String),
    #[error("this is not YAML: {0}")]
    NotYaml(String),
    #[error("this is neither OpenAPI 3 nor Swagger 2.0: it says neither `openapi: 3…` nor `swagger: \"2.0\"`")]
    NotOpenApi,
    #[error("this is not a GraphQL schema: {0}")]
    NotGraphql(String),
    #[error("the specification unfolds to more than a catalog holds: choose a part of it with `--only` or `--tag`")]
    TooMuch,
    #[error("the catalog to update is not valid:\n{0}")]
    Existing(String),
    #[error("the draft is no catalog, which is a mistake of the importer:\n{0}")]
    Refused(String),
}

impl ImportError {
    /// Stable, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::NotText => "not_text",
            Self::NotJson(_) => "not_json",
            Self::NotYaml(_) => "not_yaml",
            Self::NotOpenApi => "not_openapi",
            Self::NotGraphql(_) => "not_graphql",
            Self::TooMuch => "too_much",
            Self::Existing(_) => "bad_catalog",
            Self::Refused(_) => "refused",
        }
    }
}

/// What to take, and what to call it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The catalog's id; made from the title where it is not given.
    pub name: Option<String>,
    /// Only operations whose path, or id, fits this pattern; `*` stands for anything.
    pub only: Option<String>,
    /// Only operations with this tag.
    pub tag: Option<String>,
    /// Where the specification was fetched.
    pub from: Option<String>,
}

#[derive(Debug)]
pub struct Import {
    /// The draft.
    pub text: String,
    pub catalog: catalog::Catalog,
    pub report: Report,
}

/// An OpenAPI 3.0, 3.1 or Swagger 2.0 specification, in JSON or YAML.
pub fn openapi(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    let spec = spec::Spec::parse(bytes)?;
    map::import(&spec, options)
}

/// A GraphQL schema: SDL, or the answer to an introspection query.
pub fn graphql(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    graphql::import(bytes, options)
}

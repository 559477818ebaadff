//! The import of an OpenAPI or GraphQL specification: bytes to the text of a catalog and a report.
//!
//! Invariants:
//! - Nothing here does I/O or is async. No input makes it panic, and the cost of an input is bounded by its size.
//! - A draft that is returned loads with `catalog::read` unchanged. The report says what was left out for that, and why.

mod api;
mod draft;
mod graphql;
mod map;
mod names;
mod report;
mod settle;
mod spec;
mod update;
mod yaml;

pub use report::{Guess, ImportReport, Unmapped};
pub use update::{Update, update};

/// The reason why a specification gives no draft, or why a draft cannot be added to a catalog.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("this is {found} bytes long; a specification has at most {most}")]
    TooLarge { found: usize, most: usize },
    #[error("this is not UTF-8 text")]
    NotText,
    /// Holds the parser's message.
    #[error("this is not JSON: {0}")]
    NotJson(String),
    /// Holds the parser's message.
    #[error("this is not YAML: {0}")]
    NotYaml(String),
    #[error("this is neither OpenAPI 3 nor Swagger 2.0: it says neither `openapi: 3…` nor `swagger: \"2.0\"`")]
    NotOpenApi,
    /// Holds the parser's message, or what is missing.
    #[error("this is not a GraphQL schema: {0}")]
    NotGraphql(String),
    #[error("the specification unfolds to more than a catalog holds: choose a part of it with `--only` or `--tag`")]
    TooMuch,
    /// Holds the diagnostics of the catalog that a person gave.
    #[error("the catalog to update is not valid:\n{0}")]
    Existing(String),
    /// Holds the diagnostics of the draft. The importer is wrong, not the specification.
    #[error("the draft is no catalog, which is a mistake of the importer:\n{0}")]
    Refused(String),
}

impl ImportError {
    /// Returns the stable code of the error, for programs.
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

/// The part of a specification to import, and the name of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The catalog's id. Without it, the id is made from the title or the host.
    pub name: Option<String>,
    /// A pattern for the path or id of the operations to import; `*` stands for any text.
    pub only: Option<String>,
    /// The tag of the operations to import.
    pub tag: Option<String>,
    /// The URL that the specification was fetched from. Relative servers are resolved against it.
    pub from: Option<String>,
}

impl Options {
    /// Returns whether `only` is absent or matches one of these texts.
    fn selects(&self, texts: &[&str]) -> bool {
        self.only.as_ref().is_none_or(|glob| texts.iter().any(|text| glob_matches(glob, text)))
    }
}

/// A draft that loads.
#[derive(Debug)]
pub struct Import {
    /// The draft as YAML.
    pub text: String,
    /// The catalog that the text reads as.
    pub catalog: catalog::Catalog,
    pub report: ImportReport,
}

/// Imports an OpenAPI 3.0, 3.1 or Swagger 2.0 specification, in JSON or YAML.
pub fn openapi(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    let spec = spec::Spec::parse(bytes)?;
    map::import(&spec, options)
}

/// Imports a GraphQL schema: SDL, or the answer to an introspection query.
pub fn graphql(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    graphql::import(bytes, options)
}

/// Returns whether the text matches the pattern, in which `*` stands for any text, `/` included.
fn glob_matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    let mut has_star = false;
    while let Some(part) = parts.next() {
        has_star = true;
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    has_star || rest.is_empty()
}

//! The import of an OpenAPI or GraphQL specification: it turns the bytes of the specification into the YAML text of a catalog
//! and a report. The catalog is called a draft, because a person reviews it before use.
//!
//! Invariants:
//! - The crate does no I/O and is not async. No input makes it panic, and its cost is bounded by the size of the input.
//! - `catalog::read` accepts every returned draft. The report names each part of the specification that was left out, with the
//!   reason.

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

/// The reason why an import produced no draft, or why a draft cannot be added to an existing catalog.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the specification has {found} bytes; the importer reads at most {most} bytes")]
    TooLarge { found: usize, most: usize },
    #[error("the specification is not UTF-8 text")]
    NotText,
    /// Contains the parser's message.
    #[error("the specification is not valid JSON: {0}")]
    NotJson(String),
    /// Contains the parser's message.
    #[error("the specification is not valid YAML: {0}")]
    NotYaml(String),
    #[error(
        "the file is neither OpenAPI 3 nor Swagger 2.0: it has neither the key `openapi: 3…` nor `swagger: \"2.0\"`"
    )]
    NotOpenApi,
    /// Contains the parser's message, or names the missing part.
    #[error("the file is not a GraphQL schema: {0}")]
    NotGraphql(String),
    /// The draft is too large for a catalog even with the least detail.
    #[error("the specification is too large for one catalog: import a part of it with `--only` or `--tag`")]
    TooMuch,
    /// Contains the diagnostics of the catalog that the caller wants to update.
    #[error("the catalog to update is not valid:\n{0}")]
    Existing(String),
    /// Contains the diagnostics of the draft. The cause is a bug of the importer, not a mistake in the specification.
    #[error("the importer made a draft that is not a valid catalog; please report this bug:\n{0}")]
    Refused(String),
}

impl ImportError {
    /// Returns the stable code of the error, which scripts can compare.
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

/// The options of an import: the selected part of the specification and the name of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The catalog's id. If it is `None`, the id is made from the API's title or host.
    pub name: Option<String>,
    /// A pattern for the path or id of the operations to import; `*` matches any text. `None` imports all operations.
    pub only: Option<String>,
    /// The tag of the operations to import. `None` imports operations with any tag.
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

/// The result of an import: a draft that `catalog::read` accepts, and the report.
#[derive(Debug)]
pub struct Import {
    /// The draft as YAML.
    pub text: String,
    /// The catalog that `catalog::read` returned for the text.
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

/// Returns whether the text matches the pattern. `*` matches any text, including `/`.
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

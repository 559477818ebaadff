//! Why a command failed, with its exit code.
//! Invariant: each says what to do about it; 1 is a failure, 2 a mistake in how it was called or configured, 3 something missing.

use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the async runtime did not start: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("cannot write {path}: {cause}")]
    Unwritable { path: PathBuf, cause: std::io::Error },
    #[error("{path}:{line}: not UTF-8 text; save the file as UTF-8")]
    NotText { path: PathBuf, line: usize },
    #[error("{path} does not exist")]
    Missing { path: PathBuf },
    #[error("{path} is not a valid configuration:\n{cause}")]
    Config { path: PathBuf, cause: Box<toml::de::Error> },
    #[error("`limits.{name}` is {found}; it must be from 1 to {most}")]
    Limit { name: &'static str, found: usize, most: usize },
    #[error("`retention.{name}` is 0; it must be at least 1")]
    Retention { name: &'static str },
    #[error("{0}")]
    Usage(String),
    #[error("`{name}` is {found}; it must be from {least} to {most}")]
    Bound { name: &'static str, found: u64, least: u64, most: u64 },
    #[error("{what}; {hint}")]
    Blobs { what: String, hint: &'static str },
    #[error(transparent)]
    S3(#[from] store::blobs::s3::SettingsError),
    #[error(transparent)]
    Secret(ports::secrets::Error),
    #[error("`teaching.writes` is {found}; it is a score between 0 (teach every write) and 1")]
    Score { found: f32 },
    #[error("no place to keep data: set --data DIR, TOKAMAK_DATA or HOME")]
    NoDataFolder,
    #[error(
        "{0} is not a loopback address, and requests would need no key; make one (`tokamak token new --tenant NAME`), or listen on 127.0.0.1 or ::1"
    )]
    NotLoopback(std::net::IpAddr),
    #[error("[tenants.{tenant}]: {what}")]
    Tenant { tenant: base::TenantId, what: &'static str },
    #[error("no tenant `{name}` in the settings{}; add a table [tenants.NAME], which may be empty", one_of(.near))]
    NoTenant { name: String, near: Vec<String> },
    #[error("--principal: {cause}")]
    Principal { cause: base::IdError },
    #[error("no key whose id begins with `{id}`; `tokamak token list` prints the ids")]
    NoKey { id: String },
    #[error("several keys have an id that begins with `{id}`; give more of it")]
    SeveralKeys { id: String },
    #[error("`{id}` stands in the settings; take it out of `keys` there and start the server again")]
    KeyInSettings { id: String },
    #[error("port {port} on {address} is taken; stop what uses it or choose another with --port")]
    PortTaken { address: std::net::IpAddr, port: u16 },
    #[error("cannot listen on {address}:{port}: {cause}")]
    Listen { address: std::net::IpAddr, port: u16, cause: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    SecretStore(#[from] store::secrets::Error),
    #[error("there is no secret `{name}` in the encrypted store; `tokamak secret list` prints the names")]
    NoSecret { name: String },
    #[error("{what}; {hint}")]
    SecretInput { what: &'static str, hint: &'static str },
    #[error("this file cannot be used as a key: {path} {hint}")]
    KeyFile { path: PathBuf, hint: &'static str },
    #[error("TOKAMAK_SECRETS_KEY is not UTF-8 text; set it to text, such as what `openssl rand -base64 32` prints")]
    KeyNotText,
    #[error(transparent)]
    Upstream(#[from] upstream::BuildError),
    #[error(transparent)]
    Catalog(#[from] Box<catalog::Rejected>),
    #[error("not every catalog can be offered:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Catalogs(Vec<catalog::CatalogProblem>),
    #[error(transparent)]
    Http(#[from] server::HttpError),
    #[error(transparent)]
    Stdio(#[from] server::StdioError),
    #[error("{}", server::text::session_error(.0))]
    Session(#[from] session::Error),
    #[error("no catalog `{name}` here{}; a file is written with its folder or its ending: ./{name}.yaml", one_of(.near))]
    NoCatalog { name: String, near: Vec<String> },
    #[error(transparent)]
    Seed(#[from] teach::SeedError),
    #[error("`{catalog}` has no capability `{name}`{}", one_of(.near))]
    NoCapability { catalog: base::CatalogId, name: String, near: Vec<String> },
    #[error("there is no error code `{code}`{}; docs/errors.md lists them", one_of(.near))]
    NoCode { code: String, near: Vec<String> },
    #[error("--param {given}: {why}")]
    Param { given: String, why: String },
    #[error("this graph is too large for a picture; choose entities with --entity, or take --graph mermaid")]
    Undrawable,
    #[error("{from}: {cause}")]
    Import { from: String, cause: import::ImportError },
    #[error("cannot fetch {url}: {why}")]
    Unfetched { url: String, why: String },
    #[error("the JavaScript engine did not start: {0}")]
    Engine(#[source] js::StartError),
    #[error("this process cannot make itself known in {path}: {cause}")]
    Presence { path: PathBuf, cause: std::io::Error },
    #[error("cannot make a folder for the tour: {0}")]
    Scratch(#[source] std::io::Error),
    /// The findings are printed already.
    #[error("{0}")]
    Found(String),
}

impl From<access::Error> for Failure {
    fn from(error: access::Error) -> Self {
        Failure::Session(error.into())
    }
}

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Config { .. }
            | Failure::Limit { .. }
            | Failure::Score { .. }
            | Failure::Retention { .. }
            | Failure::Bound { .. }
            | Failure::Blobs { .. }
            | Failure::S3(_)
            | Failure::Usage(_)
            | Failure::NotText { .. }
            | Failure::Catalog(_)
            | Failure::Catalogs(_)
            | Failure::NoDataFolder
            | Failure::SecretInput { .. }
            | Failure::KeyFile { .. }
            | Failure::KeyNotText
            | Failure::SecretStore(
                store::secrets::Error::NoKey
                | store::secrets::Error::WrongKey
                | store::secrets::Error::Name { .. }
                | store::secrets::Error::Value { .. },
            )
            | Failure::NotLoopback(_)
            | Failure::Tenant { .. }
            | Failure::SeveralKeys { .. }
            | Failure::Principal { .. }
            | Failure::KeyInSettings { .. }
            | Failure::Import { .. }
            | Failure::Param { .. } => 2,
            Failure::Session(error) if error.is_missing() => 3,
            Failure::Session(error) if error.is_usage() => 2,
            Failure::Missing { .. }
            | Failure::NoSecret { .. }
            | Failure::NoTenant { .. }
            | Failure::NoKey { .. }
            | Failure::NoCatalog { .. }
            | Failure::Seed(_)
            | Failure::NoCapability { .. }
            | Failure::NoCode { .. } => 3,
            _ => 1,
        })
    }

    /// Stable, for `--json`.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Runtime(_) => "runtime",
            Failure::Unreadable { .. } => "unreadable",
            Failure::Unwritable { .. } => "unwritable",
            Failure::NotText { .. } => "not_text",
            Failure::Missing { .. } => "missing",
            Failure::Config { .. } | Failure::Limit { .. } | Failure::Score { .. } | Failure::Retention { .. } => {
                "bad_config"
            }
            Failure::Bound { .. } | Failure::Blobs { .. } | Failure::S3(_) => "bad_config",
            Failure::Secret(_) => "secret_value",
            Failure::Usage(_) => "usage",
            Failure::NoDataFolder => "no_data_folder",
            Failure::NotLoopback(_) => "not_loopback",
            Failure::Tenant { .. } => "bad_config",
            Failure::NoTenant { .. } => "no_tenant",
            Failure::NoKey { .. } => "no_key",
            Failure::Principal { .. } => "bad_principal",
            Failure::SeveralKeys { .. } => "several_keys",
            Failure::KeyInSettings { .. } => "key_in_settings",
            Failure::PortTaken { .. } => "port_taken",
            Failure::Listen { .. } => "listen",
            Failure::Store(_) => "storage",
            Failure::SecretStore(error) => error.code(),
            Failure::NoSecret { .. } => "no_secret",
            Failure::SecretInput { .. } => "secret_value",
            Failure::KeyFile { .. } | Failure::KeyNotText => "secrets_key",
            Failure::Upstream(_) => "upstream",
            Failure::Catalog(_) | Failure::Catalogs(_) => "bad_catalog",
            Failure::Http(_) | Failure::Stdio(_) => "server",
            Failure::Session(error) => error.code(),
            Failure::NoCatalog { .. } => "no_catalog",
            Failure::Seed(_) => "no_entity",
            Failure::NoCapability { .. } => "no_capability",
            Failure::NoCode { .. } => "no_code",
            Failure::Param { .. } => "bad_param",
            Failure::Import { cause, .. } => cause.code(),
            Failure::Unfetched { .. } => "unfetched",
            Failure::Undrawable => "undrawable",
            Failure::Engine(_) => "engine",
            Failure::Presence { .. } => "presence",
            Failure::Scratch(_) => "scratch",
            Failure::Found(_) => "found",
        }
    }
}

fn one_of(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) }
}

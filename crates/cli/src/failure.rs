//! The failures of commands, with their exit codes and stable codes.
//! Invariant: each message says what to do about it. The exit code is 1 for a failure, 2 for wrong arguments or settings, and 3 if
//! something does not exist.

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
    #[error("`limits.{name}` is {value}; it must be from 1 to {most}")]
    Limit { name: &'static str, value: usize, most: usize },
    #[error("`retention.{name}` is 0; it must be at least 1")]
    Retention { name: &'static str },
    /// Arguments that were parsed but do not go together, or an argument that is not valid.
    #[error("{0}")]
    Usage(String),
    /// A number in the settings is out of its range.
    #[error("`{name}` is {value}; it must be from {least} to {most}")]
    Bound { name: &'static str, value: u64, least: u64, most: u64 },
    /// The settings and flags for blobs contradict each other, or lack something.
    #[error("{problem}; {hint}")]
    Blobs { problem: String, hint: &'static str },
    #[error(transparent)]
    S3(#[from] store::blobs::s3::SettingsError),
    /// A secret that S3 needs cannot be used.
    #[error(transparent)]
    Secret(ports::secrets::Error),
    #[error("`teaching.writes` is {value}; it must be a score from 0 (teach every write) to 1")]
    Score { value: f32 },
    #[error("there is no folder for the data; pass --data DIR, or set TOKAMAK_DATA or HOME")]
    NoDataFolder,
    #[error(
        "{0} is not a loopback address, and without an API key anyone who reaches it could call; make a key (`tokamak token new --tenant NAME`), or listen on 127.0.0.1 or ::1"
    )]
    NotLoopback(std::net::IpAddr),
    #[error("[tenants.{tenant}]: {problem}")]
    Tenant { tenant: base::TenantId, problem: &'static str },
    #[error("the settings have no tenant `{name}`{}; add a table [tenants.NAME], which may be empty", one_of(.near))]
    NoTenant { name: String, near: Vec<String> },
    #[error("--principal: {cause}")]
    Principal { cause: base::IdError },
    #[error("there is no key whose id begins with `{id}`; `tokamak token list` prints the ids")]
    NoKey { id: String },
    #[error("the ids of several keys begin with `{id}`; write more of the id")]
    SeveralKeys { id: String },
    #[error("the key `{id}` is in the settings; remove it from `keys` there, and start the server again")]
    KeyInSettings { id: String },
    #[error("port {port} on {address} is taken; stop the program that uses it, or choose another port with --port")]
    PortTaken { address: std::net::IpAddr, port: u16 },
    #[error("cannot listen on {address}:{port}: {cause}")]
    Listen { address: std::net::IpAddr, port: u16, cause: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    SecretStore(#[from] store::secrets::Error),
    #[error("there is no secret `{name}` in the encrypted store; `tokamak secret list` prints the names")]
    NoSecret { name: String },
    /// The name or value given to `tokamak secret set` cannot be stored.
    #[error("{problem}; {hint}")]
    SecretInput { problem: &'static str, hint: &'static str },
    /// `hint` continues the sentence: "is empty".
    #[error("{path} cannot be used as a key file: it {hint}")]
    KeyFile { path: PathBuf, hint: &'static str },
    #[error("TOKAMAK_SECRETS_KEY is not UTF-8 text; set it to text, such as what `openssl rand -base64 32` prints")]
    KeyNotText,
    #[error(transparent)]
    Upstream(#[from] upstream::BuildError),
    #[error(transparent)]
    Catalog(#[from] Box<catalog::Rejected>),
    /// Some catalogs cannot be offered, and the command needs all of them.
    #[error("not every catalog can be offered:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Catalogs(Vec<catalog::CatalogProblem>),
    #[error(transparent)]
    Http(#[from] server::HttpError),
    #[error(transparent)]
    Stdio(#[from] server::StdioError),
    /// A use case failed.
    #[error("{}", call_error(.0))]
    Call(#[source] app::Error),
    #[error(
        "there is no catalog `{name}`{}; to name a file, write its folder or its ending: ./{name}.yaml",
        one_of(.near)
    )]
    NoCatalog { name: String, near: Vec<String> },
    #[error(transparent)]
    Seed(#[from] teach::SeedError),
    #[error("`{catalog}` has no capability `{name}`{}", one_of(.near))]
    NoCapability { catalog: base::CatalogId, name: String, near: Vec<String> },
    #[error("there is no error code `{code}`{}; docs/errors.md lists them", one_of(.near))]
    NoCode { code: String, near: Vec<String> },
    /// `argument` is the value of `--param` as it was written.
    #[error("--param {argument}: {problem}")]
    Param { argument: String, problem: String },
    #[error(
        "this graph is too large for a picture; use --graph mermaid, or draw fewer entities of a catalog with --entity"
    )]
    Undrawable,
    /// `specification` is its file or URL.
    #[error("{specification}: {cause}")]
    Import { specification: String, cause: import::ImportError },
    #[error("cannot fetch {url}: {problem}")]
    Unfetched { url: String, problem: String },
    #[error("the JavaScript engine did not start: {0}")]
    Engine(#[source] js::StartError),
    #[error("cannot register this process in {path}: {cause}; processes on one data folder find each other there")]
    Presence { path: PathBuf, cause: std::io::Error },
    #[error("cannot make a temporary folder: {0}")]
    Scratch(#[source] std::io::Error),
    /// The command did its work and reports a bad result, such as mistakes in a file. Details are printed already.
    #[error("{0}")]
    Found(String),
}

/// Renders the failure of a use case. It has the text that a model reads, except where that text names arguments of a tool.
fn call_error(error: &app::Error) -> String {
    match error {
        app::Error::Session(session::Error::Review { explained, commit }) => format!(
            "{}: nothing ran, because the plan needs a review; read it, then run it with --commit {commit} (or --force)\n{explained}",
            error.code()
        ),
        other => server::text::error(other),
    }
}

impl From<app::Error> for Failure {
    fn from(error: app::Error) -> Self {
        Failure::Call(error)
    }
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Self {
        Failure::Call(error.into())
    }
}

impl From<access::Error> for Failure {
    fn from(error: access::Error) -> Self {
        Failure::from(session::Error::from(error))
    }
}

impl Failure {
    /// Returns the exit code: 1 for a failure, 2 for wrong arguments or settings, 3 if something does not exist.
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
            Failure::Call(app::Error::Session(error)) if error.is_missing() => 3,
            Failure::Call(app::Error::Session(error)) if error.is_usage() => 2,
            Failure::Call(app::Error::NoCatalog(_)) => 3,
            Failure::Call(app::Error::BadArguments(_)) => 2,
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

    /// Returns the stable code that `--json` prints.
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
            Failure::Call(error) => error.code(),
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

/// Returns the names that may have been meant, as the end of a sentence.
fn one_of(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) }
}

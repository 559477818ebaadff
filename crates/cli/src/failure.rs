//! The error type of all commands: the message, the exit code and the stable code of each failure.
//! Invariant: a failure that the user can correct has a message with the correction. The exit code is 1 for a failure, 2 for wrong
//! arguments or settings, and 3 if something does not exist.

use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the async runtime of tokamak did not start: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("cannot write {path}: {cause}")]
    Unwritable { path: PathBuf, cause: std::io::Error },
    #[error("{path}:{line}: the line is not UTF-8 text; save the file as UTF-8")]
    NotText { path: PathBuf, line: usize },
    #[error("{path} does not exist")]
    Missing { path: PathBuf },
    #[error("the configuration file {path} has a mistake:\n{cause}")]
    Config { path: PathBuf, cause: Box<toml::de::Error> },
    #[error("`{table}.{name}` is {value} in the settings; write a number from 1 to {most}")]
    Limit { table: &'static str, name: &'static str, value: usize, most: usize },
    #[error("`retention.{name}` is 0 in the settings; write a number of at least 1")]
    Retention { name: &'static str },
    /// An argument is not valid, or two arguments contradict each other. The text is the whole message.
    #[error("{0}")]
    Usage(String),
    /// A number in the settings is out of its range.
    #[error("`{name}` is {value} in the settings; write a number from {least} to {most}")]
    Bound { name: &'static str, value: u64, least: u64, most: u64 },
    /// The settings and flags for blobs contradict each other, or a required setting is missing.
    #[error("{problem}; {hint}")]
    Blobs { problem: String, hint: &'static str },
    #[error(transparent)]
    S3(#[from] store::blobs::s3::SettingsError),
    /// A secret that S3 needs cannot be used.
    #[error(transparent)]
    Secret(ports::secrets::Error),
    #[error("`teaching.writes` is {value} in the settings; write a score from 0 (teach every write) to 1")]
    Score { value: f32 },
    #[error("no data folder is known; pass --data DIR, or set the environment variable TOKAMAK_DATA or HOME")]
    NoDataFolder,
    #[error(
        "{0} is not a loopback address, and no API key exists, so every machine that reaches this address could call the server; make a key (`tokamak token new --tenant NAME`), or listen on 127.0.0.1 or ::1"
    )]
    NotLoopback(std::net::IpAddr),
    #[error("[tenants.{tenant}] of the settings: {problem}")]
    Tenant { tenant: base::TenantId, problem: &'static str },
    #[error("the settings have no tenant `{name}`{}; add a table [tenants.NAME], which may be empty", similar_names_suffix(.near))]
    NoTenant { name: String, near: Vec<String> },
    #[error("the name after --principal is not valid: {cause}")]
    Principal { cause: base::IdError },
    #[error("no API key has an id that begins with `{id}`; `tokamak token list` prints the ids")]
    NoKey { id: String },
    #[error("several API keys have ids that begin with `{id}`; write more characters of the id")]
    SeveralKeys { id: String },
    #[error(
        "the API key `{id}` is in the settings and not in the store; remove it from `keys` of the settings, and start the server again"
    )]
    KeyInSettings { id: String },
    #[error(
        "port {port} on {address} is taken; stop the process that uses the port, or choose another port with --port"
    )]
    PortTaken { address: std::net::IpAddr, port: u16 },
    #[error("cannot listen on {address}:{port}: {cause}")]
    Listen { address: std::net::IpAddr, port: u16, cause: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    SecretStore(#[from] store::secrets::Error),
    #[error("there is no secret `{name}` in the encrypted store; `tokamak secret list` prints the names")]
    NoSecret { name: String },
    /// A secret cannot be bound in this way.
    #[error("the secret `{name}` cannot be bound: {problem}")]
    Binding { name: String, problem: String },
    #[error("the secret `{name}` has no such binding to remove; `tokamak secret list` prints the bindings")]
    NoBinding { name: String },
    /// The name or value given to `tokamak secret set` cannot be stored.
    #[error("{problem}; {hint}")]
    SecretInput { problem: &'static str, hint: &'static str },
    /// `hint` is the predicate of the message, such as "is empty".
    #[error("{path} cannot be used as a key file: the file {hint}")]
    KeyFile { path: PathBuf, hint: &'static str },
    #[error(
        "the environment variable TOKAMAK_SECRETS_KEY is not UTF-8 text; set it to a text, such as the output of `openssl rand -base64 32`"
    )]
    KeyNotText,
    #[error(transparent)]
    Upstream(#[from] upstream::BuildError),
    #[error(transparent)]
    Catalog(#[from] Box<catalog::Rejected>),
    /// Some catalogs cannot be offered, and the command needs all of them.
    #[error("some catalogs cannot be offered; correct these mistakes:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Catalogs(Vec<catalog::CatalogProblem>),
    #[error(transparent)]
    Http(#[from] server::HttpError),
    #[error(transparent)]
    Stdio(#[from] server::StdioError),
    /// A call of `app::calls` failed.
    #[error("{}", call_error_message(.0))]
    Call(#[source] app::Error),
    #[error(
        "there is no catalog `{name}`{}; if you mean a file, write its path with the extension, such as ./{name}.yaml",
        similar_names_suffix(.near)
    )]
    NoCatalog { name: String, near: Vec<String> },
    #[error(transparent)]
    Seed(#[from] teach::SeedError),
    #[error("the catalog `{catalog}` has no capability `{name}`{}", similar_names_suffix(.near))]
    NoCapability { catalog: base::CatalogId, name: String, near: Vec<String> },
    #[error("there is no error code `{code}`{}; docs/errors.md lists them", similar_names_suffix(.near))]
    NoCode { code: String, near: Vec<String> },
    /// `argument` is the value of `--param` as it was written.
    #[error("--param {argument}: {problem}")]
    Param { argument: String, problem: String },
    #[error(
        "the graph is too large for an SVG picture; use --graph mermaid, or draw fewer entities of a catalog with --entity"
    )]
    Undrawable,
    /// `specification` is the file or the URL of the specification.
    #[error("{specification}: {cause}")]
    Import { specification: String, cause: import::ImportError },
    #[error("cannot fetch {url}: {problem}")]
    Unfetched { url: String, problem: String },
    #[error("the JavaScript engine did not start: {0}")]
    Engine(#[source] js::StartError),
    #[error(
        "cannot register this process in the folder {path}: {cause}; each process that uses the data folder must be able to write to this folder"
    )]
    Presence { path: PathBuf, cause: std::io::Error },
    #[error("cannot make a temporary folder: {0}")]
    Scratch(#[source] std::io::Error),
    /// The command ran to its end and reports a bad result, such as mistakes in a file. The command has printed the details already.
    #[error("{0}")]
    Found(String),
}

/// Returns the message for the failure of a call. The message is the text that a model reads, except where that text names arguments of
/// a tool, which the command line does not have.
fn call_error_message(error: &app::Error) -> String {
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
            | Failure::Binding { .. }
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
            | Failure::NoBinding { .. }
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
            Failure::Binding { .. } => "secret_binding",
            Failure::NoBinding { .. } => "no_binding",
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

/// Returns the similar names as the end of a sentence, such as "; one of: demo | github", or an empty text if there are none.
fn similar_names_suffix(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; one of: {}", near.join(" | ")) }
}

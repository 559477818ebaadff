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
    #[error("no place to keep data: set --data DIR, TOKAMAK_DATA or HOME")]
    NoDataFolder,
    #[error(
        "{0} is not a loopback address, and this version has no auth to protect it with; listen on 127.0.0.1 or ::1"
    )]
    NotLoopback(std::net::IpAddr),
    #[error("port {port} on {address} is taken; stop what uses it or choose another with --port")]
    PortTaken { address: std::net::IpAddr, port: u16 },
    #[error("cannot listen on {address}:{port}: {cause}")]
    Listen { address: std::net::IpAddr, port: u16, cause: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    Upstream(#[from] upstream::BuildError),
    #[error(transparent)]
    Catalog(#[from] Box<catalog::Rejected>),
    #[error(transparent)]
    Registry(#[from] catalog::RegistryError),
    #[error(transparent)]
    Http(#[from] server::HttpError),
    #[error(transparent)]
    Stdio(#[from] server::StdioError),
    #[error("{}", server::text::error(.0))]
    Session(#[from] session::Error),
    #[error("cannot make a folder for the tour: {0}")]
    Scratch(#[source] std::io::Error),
    /// The findings are printed already.
    #[error("{0}")]
    Found(String),
}

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Config { .. }
            | Failure::Limit { .. }
            | Failure::NotText { .. }
            | Failure::Catalog(_)
            | Failure::Registry(_)
            | Failure::NoDataFolder
            | Failure::NotLoopback(_) => 2,
            Failure::Missing { .. } => 3,
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
            Failure::Config { .. } | Failure::Limit { .. } => "bad_config",
            Failure::NoDataFolder => "no_data_folder",
            Failure::NotLoopback(_) => "not_loopback",
            Failure::PortTaken { .. } => "port_taken",
            Failure::Listen { .. } => "listen",
            Failure::Store(_) => "storage",
            Failure::Upstream(_) => "upstream",
            Failure::Catalog(_) | Failure::Registry(_) => "bad_catalog",
            Failure::Http(_) | Failure::Stdio(_) => "server",
            Failure::Session(error) => error.code(),
            Failure::Scratch(_) => "scratch",
            Failure::Found(_) => "found",
        }
    }
}

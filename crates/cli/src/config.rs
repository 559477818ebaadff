//! The settings, from file, environment and flags, read once.
//! Invariant: an unknown key is an error with its place; a flag beats the file.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Limits, Secret};
use catalog::Catalog;
use serde::Deserialize;
use server::ToolSet;
use session::{JsSettings, Retention};
use teach::Teaching;

use crate::args::Settings;
use crate::blobs::{BlobsAt, BlobsSettings};
use crate::failure::Failure;
use crate::memory;
use crate::ports;
use crate::tenants::{self, TenantsSettings};

#[derive(Debug, Clone)]
pub struct Config {
    pub data: PathBuf,
    /// In the data folder, unless it is said where.
    pub database: PathBuf,
    pub blobs: BlobsAt,
    pub catalogs: Vec<PathBuf>,
    /// Do not start on a catalog that cannot be offered.
    pub strict_catalogs: bool,
    pub demo: bool,
    pub listen: IpAddr,
    pub port: u16,
    /// Names this server is reached by, beside the loopback ones.
    pub hosts: Vec<String>,
    pub drain_seconds: u64,
    /// A file for each secret, beside those of the environment.
    pub secrets_dir: Option<PathBuf>,
    /// Opens the encrypted secrets in the data folder.
    pub secrets_key: Option<Secret>,
    /// Offered beside the shipped ones, from specifications that `serve --openapi` names.
    pub imported: Vec<Arc<Catalog>>,
    pub limits: Limits,
    pub retention: Retention,
    /// Where calls are sent as spans: the base URL of an OpenTelemetry collector.
    pub otlp: Option<String>,
    pub teaching: Teaching,
    pub js: JsSettings,
    /// What tenants may use, and who speaks for them; who is not named may use everything.
    pub tenants: TenantsSettings,
    /// Whether requests need a key; without a word, where there is one.
    pub auth: Option<AuthMode>,
    /// Whether outgoing credentials, and so sessions, are the caller's own.
    pub delegated: bool,
    /// Which tools are offered, where no flag says it.
    pub tools: ToolSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    Keys,
    /// On loopback only.
    Off,
}

/// Whose credentials APIs are called with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuthResolution {
    /// The operator's.
    #[default]
    Env,
    /// The caller's, so that each principal has its own sessions.
    Delegated,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Telemetry {
    otlp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    database: Option<PathBuf>,
    blobs: BlobsSettings,
    catalogs: Vec<PathBuf>,
    strict_catalogs: bool,
    demo: Option<bool>,
    listen: Option<IpAddr>,
    port: Option<u16>,
    hosts: Vec<String>,
    drain_seconds: Option<u64>,
    secrets_dir: Option<PathBuf>,
    secrets_key_file: Option<PathBuf>,
    limits: Limits,
    retention: Retention,
    telemetry: Telemetry,
    teaching: Teaching,
    js: JsSettings,
    tenants: TenantsSettings,
    auth: Option<AuthMode>,
    auth_resolution: AuthResolution,
    tools: ToolSet,
}

impl Config {
    pub fn read(file: Option<&Path>, settings: &Settings) -> Result<Self, Failure> {
        let file = file.map(read_file).transpose()?.unwrap_or_default();
        let data = settings.data.clone().or(file.data).or_else(default_data).ok_or(Failure::NoDataFolder)?;
        let database = database(settings.keep.session_db_path.clone().or(file.database), &data);
        let blobs = BlobsAt::read(file.blobs, &settings.keep, &data)?;
        let catalogs = if settings.catalogs.is_empty() { file.catalogs } else { settings.catalogs.clone() };
        check_limits(&file.limits)?;
        check_retention(&file.retention)?;
        // Written so that what is no number fails too.
        if !(0.0..=1.0).contains(&file.teaching.writes) {
            return Err(Failure::Score { found: file.teaching.writes });
        }
        tenants::check(&file.tenants)?;
        let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        Ok(Self {
            data,
            database,
            blobs,
            catalogs,
            strict_catalogs: settings.strict_catalogs || file.strict_catalogs,
            demo: !settings.no_demo && file.demo.unwrap_or(true),
            listen: settings.listen.or(file.listen).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            port: settings.port.or(file.port).unwrap_or(3000),
            hosts: loopback.into_iter().chain(file.hosts).collect(),
            drain_seconds: file.drain_seconds.unwrap_or(10),
            secrets_dir: file.secrets_dir,
            secrets_key: secrets_key(file.secrets_key_file.as_deref())?,
            imported: Vec::new(),
            limits: file.limits,
            otlp: file.telemetry.otlp,
            retention: file.retention,
            teaching: file.teaching,
            js: js_settings(file.js, &file.tenants),
            tenants: file.tenants,
            auth: file.auth,
            delegated: file.auth_resolution == AuthResolution::Delegated,
            tools: file.tools,
        })
    }
}

/// What only this machine, or another table, says of them.
fn js_settings(file: JsSettings, tenants: &TenantsSettings) -> JsSettings {
    let at_work_mb = if file.at_work_mb == 0 { memory::at_work_mb() } else { file.at_work_mb };
    JsSettings { at_work_mb, heaps_mb_of: tenants::heaps_mb(tenants), ..file }
}

/// A file; where a folder is named, the file in it that has our name.
fn database(chosen: Option<PathBuf>, data: &Path) -> PathBuf {
    match chosen {
        Some(path) if !path.is_dir() => path,
        folder => folder.as_deref().unwrap_or(data).join(store::sqlite::FILE_NAME),
    }
}

/// The environment beats the file that the setting names.
fn secrets_key(file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    match std::env::var_os(ports::SECRETS_KEY).filter(|value| !value.is_empty()) {
        Some(value) => value.into_string().map(|text| Some(Secret::new(text))).map_err(|_| Failure::KeyNotText),
        None => file.map(ports::key_file).transpose(),
    }
}

/// A limit of nothing lets nothing through, and a huge one is none: both are mistakes.
fn check_limits(limits: &Limits) -> Result<(), Failure> {
    let bounded = [
        ("program_bytes", limits.program_bytes, 1 << 20),
        ("statements", limits.statements, 100_000),
        ("steps", limits.steps, 10_000),
        ("returns", limits.returns, 1_000),
        ("nesting", limits.nesting, 256),
        ("intent_bytes", limits.intent_bytes, 1 << 20),
        ("seeds", limits.seeds, 10_000),
        ("rows", limits.rows, 1_000_000),
        ("pages", limits.pages, 100_000),
        ("response_bytes", limits.response_bytes, 1 << 30),
        ("request_timeout_ms", usize::try_from(limits.request_timeout_ms).unwrap_or(usize::MAX), 3_600_000),
        ("calls_per_session", limits.calls_per_session, 1_000),
        ("calls_per_origin", limits.calls_per_origin, 1_000),
        ("fan_out", limits.fan_out, 100_000),
        ("template_bytes", limits.template_bytes, 1 << 20),
        ("template_output_bytes", limits.template_output_bytes, 64 << 20),
        ("template_fuel", usize::try_from(limits.template_fuel).unwrap_or(usize::MAX), 1_000_000_000),
        ("shown_chars", limits.shown_chars, 40_000),
    ];
    match bounded.into_iter().find(|(_, value, most)| *value == 0 || value > most) {
        Some((name, found, most)) => Err(Failure::Limit { name, found, most }),
        None => Ok(()),
    }
}

/// What is kept for no time at all would go while someone reads it.
fn check_retention(retention: &Retention) -> Result<(), Failure> {
    let Retention { execute_sessions, sessions, artifacts, claims, connections, trace_calls, .. } = *retention;
    let Retention { executions, heaps, log_entries, grace_hours, .. } = *retention;
    let named = [
        ("executions", executions),
        ("heaps", heaps),
        ("log_entries", log_entries),
        ("execute_sessions", execute_sessions),
        ("sessions", sessions),
        ("artifacts", artifacts),
        ("claims", claims),
        ("connections", connections),
        ("trace_calls", trace_calls),
        ("grace_hours", grace_hours),
    ];
    match named.into_iter().find(|(_, value)| *value == 0) {
        Some((name, _)) => Err(Failure::Retention { name }),
        None => Ok(()),
    }
}

fn read_file(path: &Path) -> Result<File, Failure> {
    let text = read_text(path)?;
    toml::from_str(&text).map_err(|cause| Failure::Config { path: path.to_owned(), cause: Box::new(cause) })
}

/// A file's text, or why there is none.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
        _ => Failure::Unreadable { path: path.to_owned(), cause },
    })?;
    text_of(path, bytes)
}

/// Bytes as text, or the line where they are none. `path` is only their name.
pub fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Failure::NotText { path: path.to_owned(), line: before.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}

/// `$XDG_DATA_HOME/tokamak`, else `~/.local/share/tokamak`.
fn default_data() -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").filter(|h| !h.is_empty()).map(|h| PathBuf::from(h).join(".local/share"));
    xdg.or_else(home).map(|base| base.join("tokamak"))
}

#[cfg(test)]
mod tests {
    use super::check_limits;
    use base::Limits;

    #[test]
    fn a_limit_of_nothing_or_of_everything_is_named() {
        assert!(check_limits(&Limits::default()).is_ok());
        let named = |limits: Limits| check_limits(&limits).unwrap_err().to_string();
        assert!(named(Limits { pages: 0, ..Limits::default() }).starts_with("`limits.pages` is 0"));
        assert!(named(Limits { calls_per_session: usize::MAX, ..Limits::default() }).contains("calls_per_session"));
        assert!(named(Limits { request_timeout_ms: 0, ..Limits::default() }).contains("request_timeout_ms"));
    }
}

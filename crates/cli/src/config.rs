//! Reads the settings once, from the configuration file, the environment and the flags.
//! Invariant: an unknown key in the configuration file is an error with its line. A flag overrides the configuration file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::ports::secrets::{NAME_RULE, is_name};
use base::{ConnectionLimits, Limits, Origin, Secret};
use catalog::Catalog;
use serde::Deserialize;
use server::ToolSet;
use session::{JsSettings, Retention};
use store::secrets::Bindings;
use teach::Teaching;

use crate::args::Settings;
use crate::blobs::{BlobsConfig, BlobsSettings};
use crate::failure::Failure;
use crate::ports;
use crate::tenants::{self, TenantsSettings};

/// The host names that a request may always have in its header Host.
pub const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The settings of a process, with flags and defaults applied.
#[derive(Debug, Clone)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// The database file, by default in the data folder.
    pub database: PathBuf,
    /// Whether a missing database is created although blobs exist.
    pub new_database: bool,
    /// The place of the blobs, with its settings.
    pub blobs: BlobsConfig,
    /// The folders of catalog files that are offered and watched.
    pub catalogs: Vec<PathBuf>,
    /// Whether a catalog with a mistake prevents the start. Otherwise the mistake is reported and the catalog is left out.
    pub strict_catalogs: bool,
    /// Whether the demo API is served and its catalog offered.
    pub demo: bool,
    pub listen: IpAddr,
    /// The port to listen on. 0 chooses a free port.
    pub port: u16,
    /// The host names that the Host header of a request may have, including the loopback names.
    pub hosts: Vec<String>,
    /// The time in which running calls may finish when the server stops.
    pub drain_seconds: u64,
    /// A folder with one file for each secret. A variable of the environment overrides the file of the same name.
    pub secrets_dir: Option<PathBuf>,
    /// The key that opens the encrypted secrets in the data folder.
    pub secrets_key: Option<Secret>,
    /// The origins to which each secret may be sent. `tokamak secret bind` stores more of them in the data folder.
    pub secrets: Bindings,
    /// The origin at which callers reach this server from outside, such as that of a proxy. Code and catalogs cannot call it.
    pub public_url: Option<Origin>,
    /// The catalogs made from the specifications of `serve --openapi`, which are offered like shipped catalogs.
    pub imported: Vec<Arc<Catalog>>,
    pub limits: Limits,
    pub connections: ConnectionLimits,
    pub retention: Retention,
    /// The base URL of the OpenTelemetry collector to which calls are exported as spans.
    pub otlp: Option<String>,
    pub teaching: Teaching,
    pub js: JsSettings,
    /// The limits and keys of each tenant. A tenant without a table may use everything.
    pub tenants: TenantsSettings,
    /// Whether requests need an API key. With `None` they need one if a key exists.
    pub auth: Option<AuthMode>,
    /// Whether APIs are called with each caller's own credentials, so that each principal has its own sessions.
    pub delegated: bool,
    /// The MCP tools to offer if there is no flag `--tools`.
    pub tools: ToolSet,
}

/// The setting `auth`: whether requests need an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// Every request needs an API key.
    Keys,
    /// No request needs an API key. The server then listens only on a loopback address.
    Off,
}

/// The setting `auth_resolution`: the credentials with which APIs are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuthResolution {
    /// The operator's credentials, which all callers share.
    #[default]
    Env,
    /// The credentials of each caller, so that each principal has its own sessions.
    Delegated,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Telemetry {
    otlp: Option<String>,
}

/// The content of the configuration file. `Config` has the same settings with flags and defaults applied.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigFile {
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
    secrets: BTreeMap<String, BoundOrigins>,
    public_url: Option<Origin>,
    limits: Limits,
    connections: ConnectionLimits,
    retention: Retention,
    telemetry: Telemetry,
    teaching: Teaching,
    js: JsSettings,
    tenants: TenantsSettings,
    auth: Option<AuthMode>,
    auth_resolution: AuthResolution,
    tools: ToolSet,
}

/// The origins of one secret in the table `[secrets]`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an origin such as \"https://api.example.com\", or a list of origins")]
enum BoundOrigins {
    One(Origin),
    Several(BTreeSet<Origin>),
}

impl Config {
    /// Reads and checks the settings. `file` is the path of the configuration file from `--config`.
    pub fn read(file: Option<&Path>, settings: &Settings) -> Result<Self, Failure> {
        let file = file.map(read_config_file).transpose()?.unwrap_or_default();
        let data = settings.data.clone().or(file.data).or_else(default_data_folder).ok_or(Failure::NoDataFolder)?;
        let database = database_path(settings.storage.session_db_path.clone().or(file.database), &data);
        let blobs = BlobsConfig::read(file.blobs, &settings.storage, &data)?;
        let catalogs = if settings.catalogs.is_empty() { file.catalogs } else { settings.catalogs.clone() };
        check_limits(&file.limits)?;
        check_connections(&file.connections)?;
        check_retention(&file.retention)?;
        // A range check refuses NaN too. Both `< 0.0` and `> 1.0` are false for NaN.
        if !(0.0..=1.0).contains(&file.teaching.writes) {
            return Err(Failure::Score { value: file.teaching.writes });
        }
        tenants::check_tenants(&file.tenants)?;
        let loopback = LOOPBACK_HOSTS.map(str::to_owned);
        Ok(Self {
            data,
            database,
            new_database: settings.storage.new,
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
            secrets: secret_bindings(file.secrets)?,
            public_url: file.public_url,
            imported: Vec::new(),
            limits: file.limits,
            connections: file.connections,
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

/// Adds two settings to those of the table `[js]`: the default of `at_work_mb`, which depends on this machine, and the heap storage of
/// each tenant.
fn js_settings(file: JsSettings, tenants: &TenantsSettings) -> JsSettings {
    let at_work_mb = if file.at_work_mb == 0 { default_at_work_mb() } else { file.at_work_mb };
    JsSettings { at_work_mb, heaps_mb_of: tenants::heap_limits_mb(tenants), ..file }
}

/// Returns the path of the database file. If `chosen` is a folder, the path is that of a file in this folder.
fn database_path(chosen: Option<PathBuf>, data: &Path) -> PathBuf {
    match chosen {
        Some(path) if !path.is_dir() => path,
        folder => folder.as_deref().unwrap_or(data).join(store::sqlite::FILE_NAME),
    }
}

/// Reads the key of the encrypted secrets from the environment, or else from the file of the setting `secrets_key_file`.
fn secrets_key(file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    match std::env::var_os(ports::SECRETS_KEY).filter(|value| !value.is_empty()) {
        Some(value) => value.into_string().map(|text| Some(Secret::new(text))).map_err(|_| Failure::KeyNotText),
        None => file.map(ports::key_file).transpose(),
    }
}

/// Returns the bindings of the table `[secrets]`. A value that is no origin, such as a secret itself, is refused without printing it.
fn secret_bindings(table: BTreeMap<String, BoundOrigins>) -> Result<Bindings, Failure> {
    let mut bindings = Bindings::new();
    for (name, origins) in table {
        let origins = match origins {
            BoundOrigins::One(origin) => BTreeSet::from([origin]),
            BoundOrigins::Several(origins) => origins,
        };
        origins.iter().try_for_each(|origin| check_binding(&name, origin))?;
        bindings.insert(name, origins);
    }
    Ok(bindings)
}

/// Refuses a binding of a name that no secret may have, or to an origin that must not receive a secret.
pub fn check_binding(name: &str, origin: &Origin) -> Result<(), Failure> {
    let shown_name = || base::printable(name, 80);
    if !is_name(name) || name == ports::SECRETS_KEY {
        return Err(Failure::Binding { name: shown_name(), problem: NAME_RULE.to_owned() });
    }
    if !origin.is_safe_for_secrets() {
        let problem = format!(
            "a secret is never sent over plain http to another machine; bind it to an https origin, not to {origin}"
        );
        return Err(Failure::Binding { name: shown_name(), problem });
    }
    Ok(())
}

/// Refuses a limit of zero, which would refuse every call, and a limit that is too large to protect the server.
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
        ("inline_ms", usize::try_from(limits.inline_ms).unwrap_or(usize::MAX), 3_600_000),
        ("row_bytes", limits.row_bytes, 16 << 20),
        ("shown_chars", limits.shown_chars, 40_000),
        ("plan_chars", limits.plan_chars, 1_000_000),
        ("list_rows", limits.list_rows, 100_000),
        ("list_bytes", limits.list_bytes, 64 << 20),
        ("slots_per_connection", limits.slots_per_connection, 100_000),
        ("detached_runs", limits.detached_runs, 100_000),
        ("detached_runs_of_all", limits.detached_runs_of_all, 100_000),
    ];
    refuse_out_of_bounds("limits", &bounded)
}

/// Refuses a limit on connections of zero, or of a size that protects nothing.
fn check_connections(limits: &ConnectionLimits) -> Result<(), Failure> {
    let seconds = |seconds: u64| usize::try_from(seconds).unwrap_or(usize::MAX);
    let bounded = [
        ("places", limits.places, 100_000),
        // Some places must stay for clients without a key, whose requests are answered with what is missing.
        ("reserved", limits.reserved, limits.places.saturating_sub(1)),
        ("per_address", limits.per_address, 100_000),
        ("idle_seconds", seconds(limits.idle_seconds), 3_600),
        ("head_seconds", seconds(limits.head_seconds), 3_600),
        ("body_seconds", seconds(limits.body_seconds), 3_600),
        ("write_seconds", seconds(limits.write_seconds), 3_600),
        ("answer_mb", limits.answer_mb, 1_024),
        ("answers_mb", limits.answers_mb, 65_536),
        ("requests_under_way", limits.requests_under_way, 10_000),
        ("transport_sessions", limits.transport_sessions, 100_000),
    ];
    refuse_out_of_bounds("connections", &bounded)
}

/// Refuses the first value of a table of the settings that is zero or larger than its bound.
fn refuse_out_of_bounds(table: &'static str, bounded: &[(&'static str, usize, usize)]) -> Result<(), Failure> {
    match bounded.iter().copied().find(|(_, value, most)| *value == 0 || value > most) {
        Some((name, value, most)) => Err(Failure::Limit { table, name, value, most }),
        None => Ok(()),
    }
}

/// Refuses a retention period of zero, because data would be removed while a caller reads it.
fn check_retention(retention: &Retention) -> Result<(), Failure> {
    let Retention { execute_sessions, sessions, artifacts, claims, connections, trace_calls, .. } = *retention;
    let Retention { executions, heaps, log_entries, grace_hours, .. } = *retention;
    let periods = [
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
    match periods.into_iter().find(|(_, value)| *value == 0) {
        Some((name, _)) => Err(Failure::Retention { name }),
        None => Ok(()),
    }
}

fn read_config_file(path: &Path) -> Result<ConfigFile, Failure> {
    let text = read_text(path)?;
    toml::from_str(&text).map_err(|cause| Failure::Config { path: path.to_owned(), cause: Box::new(cause) })
}

/// Reads a file as text.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
        _ => Failure::Unreadable { path: path.to_owned(), cause },
    })?;
    decode_text(path, bytes)
}

/// Converts bytes to text. The error names the first line that is not UTF-8, and `path` as the file.
pub fn decode_text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Failure::NotText { path: path.to_owned(), line: valid.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}

/// Returns the default data folder: `$XDG_DATA_HOME/tokamak`, or else `~/.local/share/tokamak`.
fn default_data_folder() -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").filter(|h| !h.is_empty()).map(|h| PathBuf::from(h).join(".local/share"));
    xdg.or_else(home).map(|base| base.join("tokamak"))
}

/// The lower bound of the default of `js.at_work_mb`.
const MIN_AT_WORK_MB: u64 = 1_024;
/// The upper bound of the default of `js.at_work_mb`.
const MAX_AT_WORK_MB: u64 = 4_096;

/// Returns the default of `js.at_work_mb`, the memory that all running steps of scripts may use together: a quarter of the memory of this
/// machine, or of the container if that is less. If the size of the memory cannot be read, the default is the lower bound.
fn default_at_work_mb() -> u64 {
    // The first file belongs to control groups of version 2, the second to version 1. Without a limit, version 2 writes `max`, which is
    // not a number and is ignored.
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory_bytes(&text));
    quarter_of_memory_mb(limits.chain(machine).min())
}

/// Returns the value of `MemTotal` in bytes. The kernel writes this value in kB.
fn total_memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kb.checked_mul(1_024)
}

/// Returns a quarter of the memory in MB, between the two bounds. Without a known memory the result is the lower bound.
fn quarter_of_memory_mb(bytes: Option<u64>) -> u64 {
    bytes.map_or(MIN_AT_WORK_MB, |bytes| (bytes / 4) >> 20).clamp(MIN_AT_WORK_MB, MAX_AT_WORK_MB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_zero_or_without_effect_is_refused_by_name() {
        assert!(check_limits(&Limits::default()).is_ok());
        let refusal = |limits: Limits| check_limits(&limits).unwrap_err().to_string();
        assert!(refusal(Limits { pages: 0, ..Limits::default() }).starts_with("`limits.pages` is 0"));
        assert!(refusal(Limits { calls_per_session: usize::MAX, ..Limits::default() }).contains("calls_per_session"));
        let refusal_of_connections = |limits: ConnectionLimits| check_connections(&limits).unwrap_err().to_string();
        let reserved = ConnectionLimits { reserved: 2_048, ..ConnectionLimits::default() };
        assert!(refusal_of_connections(reserved).starts_with("`connections.reserved` is 2048"));
        assert!(check_connections(&ConnectionLimits::default()).is_ok());
        assert!(refusal(Limits { request_timeout_ms: 0, ..Limits::default() }).contains("request_timeout_ms"));
    }

    /// Every limit has a bound, so a new limit cannot be forgotten in `check_limits` and `check_connections`.
    #[test]
    fn each_limit_is_checked() {
        for name in toml::Table::try_from(Limits::default()).unwrap().keys() {
            let limits: Limits = toml::from_str(&format!("{name} = 0")).unwrap();
            assert!(check_limits(&limits).is_err(), "`limits.{name}` may be 0");
            let limits: Limits = toml::from_str(&format!("{name} = {}", i64::MAX)).unwrap();
            assert!(check_limits(&limits).is_err(), "`limits.{name}` has no upper bound");
        }
        for name in toml::Table::try_from(ConnectionLimits::default()).unwrap().keys() {
            let limits: ConnectionLimits = toml::from_str(&format!("{name} = 0")).unwrap();
            assert!(check_connections(&limits).is_err(), "`connections.{name}` may be 0");
            let limits: ConnectionLimits = toml::from_str(&format!("{name} = {}", i64::MAX)).unwrap();
            assert!(check_connections(&limits).is_err(), "`connections.{name}` has no upper bound");
        }
    }

    const OPERATIONS: &str = include_str!("../../../docs/operations.md");

    /// Returns the block of TOML in docs/operations.md that contains `part`.
    fn documented(part: &str) -> &'static str {
        let mut blocks = OPERATIONS.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        blocks.find(|block| block.contains(part)).unwrap()
    }

    /// Compares a documented table with the defaults: every setting is documented, with its default.
    fn assert_documented(name: &str, documented: &toml::Table, defaults: &toml::Table) {
        for (key, value) in defaults {
            assert_eq!(documented.get(key), Some(value), "docs/operations.md: [{name}] {key}");
        }
        for key in documented.keys() {
            assert!(defaults.contains_key(key), "docs/operations.md: [{name}] {key} is no setting");
        }
    }

    #[test]
    fn the_documented_limits_are_the_real_ones() {
        assert_tables_have_the_defaults();
        assert_sentences_have_the_defaults();
    }

    fn assert_tables_have_the_defaults() {
        let all: toml::Table = toml::from_str(documented("[limits]")).unwrap();
        let retention: toml::Table = toml::from_str(documented("[retention]")).unwrap();
        let table = |of: &toml::Table, name: &str| of[name].as_table().unwrap().clone();
        assert_documented("limits", &table(&all, "limits"), &toml::Table::try_from(Limits::default()).unwrap());
        let connections = toml::Table::try_from(ConnectionLimits::default()).unwrap();
        assert_documented("connections", &table(&all, "connections"), &connections);
        assert_documented("js", &table(&all, "js"), &toml::Table::try_from(JsSettings::default()).unwrap());
        let defaults = toml::Table::try_from(Retention::default()).unwrap();
        assert_documented("retention", &table(&retention, "retention"), &defaults);
        let settings = Settings { data: Some("data".into()), ..Settings::default() };
        let config = Config::read(None, &settings).unwrap();
        let number = |name: &str| all[name].as_integer().unwrap();
        assert_eq!(number("port"), i64::from(config.port));
        assert_eq!(number("drain_seconds"), config.drain_seconds as i64);
        let blobs: BlobsSettings = toml::from_str("").unwrap();
        let documented_blobs: toml::Table = toml::from_str(documented("[blobs]")).unwrap();
        for (name, default) in blobs.numbers() {
            assert_eq!(documented_blobs["blobs"][name].as_integer(), i64::try_from(default).ok(), "[blobs] {name}");
        }
        let writes = config.teaching.writes;
        assert!(OPERATIONS.contains(&format!("`writes = {writes}`")), "[teaching] writes is {writes}");
    }

    /// Compares the sentences of other pages that repeat a limit.
    fn assert_sentences_have_the_defaults() {
        let (limits, js, retention) = (Limits::default(), JsSettings::default(), Retention::default());
        let heaps = include_str!("../../../docs/heaps.md");
        let http = include_str!("../../../docs/http.md");
        let ConnectionLimits { idle_seconds, head_seconds, body_seconds, write_seconds, .. } =
            ConnectionLimits::default();
        let language = include_str!("../../../docs/language.md");
        let storage = include_str!("../../../docs/storage.md");
        let sentences = [
            (heaps, format!("`wait_ms` ({})", grouped(js.wait_ms))),
            (heaps, format!("`timeout_ms` ({}, at most {})", grouped(js.timeout_ms), grouped(js.most_timeout_ms))),
            (heaps, format!("`memory_mb` ({}, at most {})", js.memory_mb, js.most_memory_mb)),
            (heaps, format!("| `code` | {} MiB (`[js] code_bytes`) |", js.code_bytes >> 20)),
            (heaps, format!("`[js] output_bytes` ({} MiB)", js.output_bytes >> 20)),
            (heaps, format!("{} unfinished runs of a session and {} of a tenant", js.queue, grouped(js.runs as u64))),
            (heaps, format!("`[retention] heaps` ({} days)", retention.heaps)),
            (heaps, format!("the `log_entries` ({}) newest", grouped(u64::from(retention.log_entries)))),
            (heaps, format!("`sessions` days ({}) after", retention.sessions)),
            (heaps, format!("{} rows and {} MB", grouped(limits.list_rows as u64), limits.list_bytes / 1_000_000)),
            (http, format!("`Keep-Alive: timeout={idle_seconds}`")),
            (http, format!("head of a request for more than {head_seconds} s")),
            (
                http,
                format!("for more than {body_seconds} s, or reads almost nothing of an answer for {write_seconds} s"),
            ),
            (language, format!("until {} rows or {} pages", grouped(limits.rows as u64), limits.pages)),
            (language, format!("Over {} characters", grouped(limits.shown_chars as u64))),
            (storage, format!("up to {} KiB (`limits.row_bytes`)", limits.row_bytes >> 10)),
        ];
        for (page, sentence) in sentences {
            assert!(page.contains(&sentence), "no page says: {sentence}");
        }
    }

    /// Writes a number with a comma between thousands.
    fn grouped(number: u64) -> String {
        let digits = number.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    }

    #[test]
    fn a_secret_is_bound_to_one_origin_or_to_several() {
        let read = |text: &str| toml::from_str::<ConfigFile>(text).map_err(|error| error.to_string());
        let table =
            "[secrets]\nONE = \"https://a.example\"\nTWO = [\"https://a.example:443\", \"http://localhost:8080\"]\n";
        let bindings = secret_bindings(read(table).unwrap().secrets).unwrap();
        assert_eq!(bindings["ONE"].len(), 1);
        assert!(bindings["TWO"].contains(&Origin::parse("https://a.example").unwrap()) && bindings["TWO"].len() == 2);
        // The value of a secret in this table is a mistake that must not be printed in full as a message of its own.
        assert!(read("[secrets]\nONE = \"hunter2\"\n").unwrap_err().contains("expected an origin"));
        for table in ["[secrets]\nONE = \"http://a.example\"\n", "[secrets]\n\"../x\" = \"https://a.example\"\n"] {
            assert!(matches!(secret_bindings(read(table).unwrap().secrets), Err(Failure::Binding { .. })), "{table}");
        }
    }

    #[test]
    fn steps_get_a_quarter_of_the_memory_within_bounds() {
        assert_eq!(total_memory_bytes("MemTotal:       24653244 kB\nMemFree: 1 kB\n"), Some(24_653_244 * 1_024));
        assert_eq!(total_memory_bytes("nothing of the kind"), None);
        let shares = [None, Some(1 << 30), Some(8 << 30), Some(24 << 30), Some(u64::MAX)].map(quarter_of_memory_mb);
        assert_eq!(shares, [1_024, 1_024, 2_048, 4_096, 4_096]);
    }
}

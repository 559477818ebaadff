//! The unsafe settings of an installation, in one table of checks. `tokamak doctor` reports each of them.
//! Invariant: a check reads settings, permissions, stored keys and the bindings of secrets only. It changes nothing and calls no API.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use base::{Method, Origin, TenantId};
use catalog::Registry;

use crate::config::{AuthMode, Config};
use crate::{shipped, tenants, wiring};

/// The installation as the checks see it.
pub struct Installation<'a> {
    pub config: &'a Config,
    /// The path of the configuration file, if there is one.
    pub config_file: Option<&'a Path>,
    /// The catalogs that are offered. `None` if they could not be loaded.
    pub registry: Option<&'a Registry>,
    /// Whether requests over HTTP need an API key.
    pub keys_required: bool,
    /// Whether the store has an API key, a revoked one included.
    pub has_stored_keys: bool,
    /// The tenants that have valid stored keys and no table in the settings.
    pub unnamed_tenants: &'a [TenantId],
    /// The folders that other users could read until this command.
    pub repaired: &'a [PathBuf],
}

/// One unsafe setting, or one unsafe state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsafeSetting {
    /// The setting or the file.
    pub name: String,
    /// The danger and the remedy, as the predicate of a sentence about the setting.
    pub danger: String,
}

/// Every check. A new unsafe setting gets its line here, and its sentence in docs/security.md.
const CHECKS: [fn(&Installation<'_>) -> Vec<UnsafeSetting>; 11] = [
    open_doors,
    keys_without_tenant,
    keys_in_clear_text,
    unbound_secrets,
    readable_folders,
    writable_files,
    private_origins,
    origins_in_clear_text,
    writes_without_review,
    telemetry_in_clear_text,
    blobs_in_clear_text,
];

/// Returns every unsafe setting of the installation.
pub fn unsafe_settings(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    CHECKS.iter().flat_map(|check| check(installation)).collect()
}

fn unsafe_setting(name: impl Into<String>, danger: impl Into<String>) -> UnsafeSetting {
    UnsafeSetting { name: name.into(), danger: danger.into() }
}

/// Finds doors that are open although a caller from elsewhere could come through them.
fn open_doors(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let config = installation.config;
    let mut found = Vec::new();
    if installation.keys_required {
        return found;
    }
    if config.auth == Some(AuthMode::Off) && installation.has_stored_keys {
        found.push(unsafe_setting(
            "auth = \"off\"",
            "lets every process of this machine call without a key, although keys exist; remove the setting",
        ));
    }
    if config.hosts.iter().any(|host| !is_loopback_name(host)) {
        found.push(unsafe_setting(
            "hosts",
            "names a host that is not loopback, so a proxy may pass on callers from elsewhere, and no key is required; make a key with `tokamak token new`",
        ));
    }
    if !config.listen.is_loopback() {
        found.push(unsafe_setting(
            "listen",
            format!(
                "is {}, where other machines can connect, and no key is required; make a key with `tokamak token new`",
                config.listen
            ),
        ));
    }
    found
}

fn keys_without_tenant(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let problem = |tenant: &TenantId| {
        unsafe_setting(
            format!("[tenants.{tenant}]"),
            format!("is missing: {}", tenants::unnamed_tenant_problem(tenant)),
        )
    };
    installation.unnamed_tenants.iter().map(problem).collect()
}

/// Finds a server whose callers send their keys over a network without TLS, which this server does not have.
fn keys_in_clear_text(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let config = installation.config;
    if config.listen.is_loopback() || !installation.keys_required {
        return Vec::new();
    }
    let danger = format!(
        "is {}, and the server speaks HTTP without TLS, so keys can be read on the way; listen on loopback behind a proxy with TLS",
        config.listen
    );
    vec![unsafe_setting("listen", danger)]
}

/// Finds secrets that are set and not bound to the origin that would receive them. Such a secret is often one that an older version sent
/// without a binding.
fn unbound_secrets(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let Some(registry) = installation.registry else { return Vec::new() };
    let problems = wiring::unbound_secrets(installation.config, registry);
    problems.into_iter().map(|problem| unsafe_setting("[secrets]", format!("lacks a binding: {problem}"))).collect()
}

fn readable_folders(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let danger = "was open to other users of this machine until now; its permissions were removed, and what was read before cannot be undone";
    installation.repaired.iter().map(|folder| unsafe_setting(folder.display().to_string(), danger)).collect()
}

/// Finds files and folders that decide what the server does and that other users may change.
fn writable_files(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let config = installation.config;
    let folder_of_database = config.database.parent().filter(|folder| *folder != config.data);
    let places = installation
        .config_file
        .into_iter()
        .map(|path| (path, "the settings"))
        .chain(config.catalogs.iter().map(|path| (path.as_path(), "catalogs, which say where credentials are sent")))
        .chain(config.secrets_dir.iter().map(|path| (path.as_path(), "secrets")))
        .chain(folder_of_database.map(|path| (path, "the database")));
    places
        .filter(|(path, _)| is_writable_by_others(path))
        .map(|(path, content)| {
            let danger =
                format!("may be changed by other users of this machine and has {content}; run `chmod go-w` on it");
            unsafe_setting(path.display().to_string(), danger)
        })
        .collect()
}

#[cfg(unix)]
fn is_writable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn is_writable_by_others(_path: &Path) -> bool {
    false
}

/// Finds catalogs and rules of `fetch` that reach into this machine or a private network.
fn private_origins(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let danger = |origin: &Origin| {
        format!(
            "reaches {}, which is inside of this machine or a private network; keep it only if callers may use that service",
            origin.as_str()
        )
    };
    let catalogs = installation.registry.into_iter().flat_map(Registry::iter);
    let catalogs = catalogs
        .filter(|catalog| !shipped::is_shipped(&catalog.id) && is_private(&catalog.origin))
        .map(|catalog| unsafe_setting(format!("the catalog {}", catalog.id), danger(&catalog.origin)));
    let rules = installation.config.js.fetch.iter().filter(|rule| is_private(&rule.origin));
    catalogs.chain(rules.map(|rule| unsafe_setting("js.fetch", danger(&rule.origin)))).collect()
}

/// Finds origins to which requests, and perhaps credentials, go without TLS.
fn origins_in_clear_text(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let danger = |origin: &Origin| {
        format!("calls {} without TLS, so requests and answers can be read and changed on the way", origin.as_str())
    };
    let is_clear = |origin: &Origin| origin.as_str().starts_with("http://") && !is_private(origin);
    let catalogs =
        installation.registry.into_iter().flat_map(Registry::iter).filter(|catalog| is_clear(&catalog.origin));
    let catalogs =
        catalogs.map(|catalog| unsafe_setting(format!("the catalog {}", catalog.id), danger(&catalog.origin)));
    let rules = installation.config.js.fetch.iter().filter(|rule| is_clear(&rule.origin));
    catalogs.chain(rules.map(|rule| unsafe_setting("js.fetch", danger(&rule.origin)))).collect()
}

/// Finds ways in which code writes although nobody has read a plan.
fn writes_without_review(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let js = &installation.config.js;
    let setting = js.writes_without_review.then(|| {
        unsafe_setting("js.writes_without_review", "lets code write to every API without a review; remove the setting")
    });
    let rules =
        js.fetch.iter().filter(|rule| rule.auth.is_some() && rule.methods.iter().any(|method| *method != Method::Get));
    let rules = rules.map(|rule| {
        let danger = format!(
            "lets code send other methods than GET with a credential to {}, and a fetch has no review",
            rule.origin.as_str()
        );
        unsafe_setting("js.fetch", danger)
    });
    setting.into_iter().chain(rules).collect()
}

fn telemetry_in_clear_text(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let url = installation.config.otlp.iter().filter(|url| url.starts_with("http://") && !names_loopback(url));
    url.map(|url| unsafe_setting("telemetry.otlp", format!("sends spans to {} without TLS", base::printable(url, 100))))
        .collect()
}

fn blobs_in_clear_text(installation: &Installation<'_>) -> Vec<UnsafeSetting> {
    let allowed = installation.config.blobs.allows_http();
    let danger = "lets heaps and results go to S3 without TLS; remove the setting";
    allowed.then(|| unsafe_setting("blobs.allow_http", danger)).into_iter().collect()
}

/// Returns whether an origin names this machine or an address of a private network.
fn is_private(origin: &Origin) -> bool {
    let host = host_of(origin.as_str());
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || matches!(address.octets(), [100, 64..=127, ..])
        }
        Ok(IpAddr::V6(address)) => address.is_loopback() || matches!(address.segments(), [0xfc00..=0xfdff, ..]),
        Err(_) => is_loopback_name(host),
    }
}

fn names_loopback(url: &str) -> bool {
    let host = host_of(url);
    host.parse::<IpAddr>().map_or_else(|_| is_loopback_name(host), |address| address.is_loopback())
}

/// Returns the host of a URL without its port and without the brackets of an IPv6 address.
fn host_of(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback_name(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::args::Settings;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokamak.toml");
        std::fs::write(&file, text).unwrap();
        let settings = Settings { data: Some(folder.path().join("data")), ..Settings::default() };
        Config::read(Some(&file), &settings).unwrap()
    }

    fn names<'c>(config: &'c Config, change: impl FnOnce(&mut Installation<'c>)) -> Vec<String> {
        let mut installation = Installation {
            config,
            config_file: None,
            registry: None,
            keys_required: false,
            has_stored_keys: false,
            unnamed_tenants: &[],
            repaired: &[],
        };
        change(&mut installation);
        unsafe_settings(&installation).into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn the_defaults_are_safe() {
        assert_eq!(names(&config(""), |_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_unsafe_setting_is_reported() {
        for (text, expected) in [
            ("auth = \"off\"", vec!["auth = \"off\""]),
            ("hosts = [\"tokamak.example\"]", vec!["hosts"]),
            ("listen = \"0.0.0.0\"", vec!["listen"]),
            ("[js]\nwrites_without_review = true", vec!["js.writes_without_review"]),
            ("[js]\nfetch = [\"http://10.0.0.5:8080\"]", vec!["js.fetch"]),
            ("[js]\nfetch = [\"http://[::1]:80\"]", vec!["js.fetch"]),
            ("[js]\nfetch = [\"http://api.example.com\"]", vec!["js.fetch"]),
            (
                "[js]\nfetch = [{ origin = \"https://api.example.com\", methods = [\"POST\"], auth = { bearer = \"T\" } }]",
                vec!["js.fetch"],
            ),
            ("[telemetry]\notlp = \"http://collector.example:4318\"", vec!["telemetry.otlp"]),
            ("[telemetry]\notlp = \"http://127.0.0.1:4318\"", vec![]),
            ("[blobs]\nurl = \"s3://heaps/p\"\nallow_http = true", vec!["blobs.allow_http"]),
        ] {
            assert_eq!(names(&config(text), |installation| installation.has_stored_keys = true), expected, "{text}");
        }
    }

    #[test]
    fn keys_files_and_folders_are_reported() {
        let tenant = [TenantId::parse("gone").unwrap()];
        let repaired = [PathBuf::from("/data")];
        let defaults = config("");
        assert_eq!(names(&defaults, |found| found.unnamed_tenants = &tenant), ["[tenants.gone]"]);
        assert_eq!(names(&defaults, |found| found.repaired = &repaired), ["/data"]);
        let public = config("listen = \"0.0.0.0\"");
        assert_eq!(names(&public, |found| found.keys_required = true), ["listen"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_configuration_file_that_others_can_change_is_reported() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokamak.toml");
        std::fs::write(&file, "").unwrap();
        for (mode, reported) in [(0o600, 0), (0o644, 0), (0o664, 1), (0o666, 1)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(names(&config(""), |found| found.config_file = Some(&file)).len(), reported, "{mode:o}");
        }
    }
}

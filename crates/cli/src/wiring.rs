//! Builds the app from the settings: catalogs, storage, upstream, JavaScript engine and demo API.
//! Invariant: a mistake in the settings is an error before the first request is answered.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::{CallRates, Tenants};
use app::{Admission, App};
use base::{Auth, Origin, TenantId};
use catalog::{Catalog, Registry};
use session::{Ports, Service};
use store::secrets::{BindingStore, SecretStore};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use upstream::RefusedServers;

use crate::catalogs::Catalogs;
use crate::config::{AuthMode, Config, LOOPBACK_HOSTS};
use crate::failure::Failure;
use crate::ports::{FilePresence, Listeners, OperatorSecrets, SecretBindings, SystemClock, SystemEntropy};
use crate::{shipped, tenants};

/// The app of a configuration, and the catalogs of its first registry.
pub struct WiredApp {
    pub app: Arc<App>,
    pub catalogs: Catalogs,
    /// The store below the app.
    pub store: Arc<dyn ::ports::Store>,
    /// The folders that other users could read until now.
    pub repaired: Vec<PathBuf>,
}

/// Builds the app of a configuration. The demo API runs until `stop` is cancelled. `listener` is the address on which this process
/// answers requests, if it does.
pub async fn build_app(
    config: &Config,
    listener: Option<SocketAddr>,
    stop: &CancellationToken,
) -> Result<WiredApp, Failure> {
    let catalogs = Catalogs::load(config)?;
    let repaired = make_folders_private(config)?;
    let mut routes = BTreeMap::new();
    if config.demo {
        // The route is for the origin of the shipped demo catalog, even if a file replaces this catalog, because existing sessions may
        // have pinned the shipped one.
        routes.insert(shipped::demo_catalog()?.origin.clone(), start_demo(stop).await?);
    }
    let (store, blobs) = (open_store(config)?, open_blobs(config)?);
    let secret_store = secret_store(config);
    if secret_store.has_key() {
        secret_store.check()?;
    }
    let keys_required = keys_required(config, store.as_ref()).await?;
    let ports = Ports {
        store: store.clone(),
        blobs,
        upstream: Arc::new(build_upstream(config, routes, own_servers(config, listener), secret_store)?),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    let service = Service::new(ports, catalogs.registry(), config.limits.clone())
        .with_teaching(config.teaching)
        .with_retention(config.retention.clone())
        .with_tenants(Tenants::new(tenants::permissions_by_tenant(&config.tenants)))
        .with_delegated(config.delegated)
        .with_keys(tenants::configured_keys(&config.tenants), tenants::named_tenants(&config.tenants))
        .with_js(Arc::new(start_engine(config)?), Arc::new(register_process(config, listener)?), config.js.clone());
    let rates = CallRates::new(tenants::calls_per_minute(&config.tenants));
    let app = App::new(Arc::new(service), Admission::new(keys_required, rates));
    Ok(WiredApp { app: Arc::new(app), catalogs, store, repaired })
}

/// Returns whether API keys may exist. This function makes no data folder, so that a refused start leaves no folder behind.
pub fn may_have_keys(config: &Config) -> bool {
    match config.auth {
        Some(mode) => mode == AuthMode::Keys,
        None => tenants::need_keys(&config.tenants) || config.database.exists(),
    }
}

/// Returns whether requests need an API key. Without the setting `auth` they need one if the settings have a key or a tenant that only a
/// key can name, and as soon as a key was made, even if it was revoked since and whatever tenants the settings have.
pub async fn keys_required(config: &Config, store: &dyn ::ports::Store) -> Result<bool, Failure> {
    if let Some(mode) = config.auth {
        return Ok(mode == AuthMode::Keys);
    }
    Ok(tenants::need_keys(&config.tenants) || access::keys::any(store).await?)
}

/// Starts the JavaScript engine. The compiled code of the engine is cached in the data folder, because compiling it takes seconds.
fn start_engine(config: &Config) -> Result<js::Engine, Failure> {
    let settings = js::Settings { code_cache: Some(config.data.join("engines")), ..js::Settings::default() };
    js::Engine::start(&settings).map_err(Failure::Engine)
}

/// Registers this process among the processes that use the same database.
fn register_process(config: &Config, listener: Option<SocketAddr>) -> Result<FilePresence, Failure> {
    let folder = presence_folder(config);
    FilePresence::join(folder, listener.as_slice())
        .map_err(|cause| Failure::Presence { path: folder.to_owned(), cause })
}

/// Returns the folder of the database, in which the processes register: processes that share a database must find each other, wherever
/// their blobs are.
fn presence_folder(config: &Config) -> &Path {
    config.database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref())
}

/// Returns the servers that code and catalogs cannot call: the processes on this database, by their addresses and by the names under
/// which callers reach them.
fn own_servers(config: &Config, listener: Option<SocketAddr>) -> RefusedServers {
    let public = config.public_url.as_ref().map(Origin::host_and_port);
    let mut names: Vec<(String, u16)> = public.into_iter().map(|(host, port)| (host.to_owned(), port)).collect();
    // A request with one of these names in its header Host is answered, so a proxy may lead each of them here.
    for host in config.hosts.iter().filter(|host| !LOOPBACK_HOSTS.contains(&host.as_str())) {
        let ports = [80, 443].into_iter().chain(listener.map(|listener| listener.port()));
        names.extend(ports.map(|port| (host.clone(), port)));
    }
    RefusedServers::new(Arc::new(Listeners::new(presence_folder(config), names)))
}

/// Makes the folders of the settings readable by this user only. Returns the folders that other users could read until then.
pub fn make_folders_private(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let mut repaired = Vec::new();
    for folder in std::iter::once(config.data.as_path()).chain(config.blobs.folders()) {
        if ::store::folder::make_private(folder)? {
            repaired.push(folder.to_owned());
        }
    }
    Ok(repaired)
}

/// Opens the SQLite database, and makes the file if it does not exist. A database that is missing beside its blobs is an error.
pub fn open_store(config: &Config) -> Result<Arc<dyn ::ports::Store>, Failure> {
    make_folders_private(config)?;
    // The database is looked for again at the end, because another process may have created it and stored blobs in between.
    if !config.new_database
        && !has_database(&config.database)
        && let Some(remains) = config.blobs.existing(&config.database).or_else(|| orphaned_wal(&config.database))
        && !has_database(&config.database)
    {
        return Err(::store::OpenError::Lost { path: config.database.clone(), remains }.into());
    }
    Ok(Arc::new(::store::sqlite::SqliteStore::open(&config.database)?))
}

/// Returns whether there is a database with content. A file without a byte is left by a process that died when it created the database.
fn has_database(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

/// Returns the path of a WAL with commits whose database is missing.
fn orphaned_wal(database: &Path) -> Option<String> {
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    has_database(Path::new(&wal)).then(|| Path::new(&wal).display().to_string())
}

/// Opens the storage for blobs, and makes its folder if the folder does not exist. Remote storage gets no request at this time.
pub fn open_blobs(config: &Config) -> Result<Arc<dyn ::ports::Blobs>, Failure> {
    config.blobs.open(&config.database, &operator_secrets(config, secret_store(config)))
}

/// Returns an upstream for a command that calls one catalog without an app. If this is the demo catalog, the demo API is served until
/// `stop` is cancelled.
pub async fn upstream_for(
    config: &Config,
    catalog: &Catalog,
    stop: &CancellationToken,
) -> Result<upstream::HttpUpstream, Failure> {
    let mut routes = BTreeMap::new();
    if config.demo && catalog.origin == shipped::demo_catalog()?.origin {
        routes.insert(catalog.origin.clone(), start_demo(stop).await?);
    }
    build_upstream(config, routes, RefusedServers::default(), secret_store(config))
}

/// Returns an upstream for requests that belong to no catalog, such as fetching a specification.
pub fn upstream_without_catalog(config: &Config) -> Result<upstream::HttpUpstream, Failure> {
    build_upstream(config, BTreeMap::new(), RefusedServers::default(), secret_store(config))
}

fn build_upstream(
    config: &Config,
    routes: BTreeMap<Origin, Origin>,
    refused_servers: RefusedServers,
    secret_store: Arc<SecretStore>,
) -> Result<upstream::HttpUpstream, Failure> {
    let options = upstream::Options { routes, refused_servers, ..upstream::Options::from(&config.limits) };
    Ok(upstream::HttpUpstream::new(options, Arc::new(operator_secrets(config, secret_store)), Arc::new(SystemClock))?)
}

/// Returns the operator's secrets, from all places of the settings.
pub fn operator_secrets(config: &Config, store: Arc<SecretStore>) -> OperatorSecrets {
    OperatorSecrets::new(config.secrets_dir.clone(), store, secret_bindings(config))
}

/// Returns the problem of each secret that a catalog or a rule of `js.fetch` uses, and that is set but not bound to the origin that would
/// receive it. Each text contains the command that binds the secret.
pub fn unbound_secrets(config: &Config, registry: &Registry) -> Vec<String> {
    let secrets = operator_secrets(config, secret_store(config));
    let by_catalogs = registry.iter().flat_map(|catalog| {
        let name = catalog.id.to_string();
        catalog.auth.iter().map(move |auth| (name.clone(), TenantId::local(), auth.clone(), catalog.origin.clone()))
    });
    let by_rules = config.js.fetch.iter().flat_map(|rule| {
        let name = format!("the rule of js.fetch for {}", rule.origin);
        rule.auth.iter().map(move |auth| (name.clone(), rule_tenant(rule), auth.clone(), rule.origin.clone()))
    });
    let mut problems = Vec::new();
    for (user, tenant, auth, origin) in by_catalogs.chain(by_rules) {
        for (name, origin) in secret_uses(&auth, &origin) {
            if let Err(problem @ ::ports::secrets::Error::NotBound { .. }) = secrets.find_for(&tenant, name, origin) {
                problems.push(format!("{user}: {problem}"));
            }
        }
    }
    problems.dedup();
    problems
}

/// Returns each secret of an authentication with each origin to which it must be bound, for requests to `origin`.
pub fn secret_uses<'a>(auth: &'a Auth, origin: &'a Origin) -> Vec<(&'a str, &'a Origin)> {
    let mut uses: Vec<_> = auth.secret_names().into_iter().map(|name| (name, auth.secret_origin(origin))).collect();
    // The token of a client has the rights of its secret, so the secret is bound to the API too.
    if let Auth::Oauth2 { client_secret, .. } = auth {
        uses.push((client_secret, origin));
    }
    uses.dedup();
    uses
}

/// Returns a tenant that may use a rule of `js.fetch`.
pub fn rule_tenant(rule: &session::FetchRule) -> TenantId {
    rule.tenants.as_ref().and_then(|tenants| tenants.first().cloned()).unwrap_or_else(TenantId::local)
}

/// Returns the bindings of secrets to origins, from the settings and the data folder.
pub fn secret_bindings(config: &Config) -> SecretBindings {
    SecretBindings::new(config.secrets.clone(), BindingStore::new(&config.data))
}

/// Returns the store of encrypted secrets in the data folder. The first secret that is set makes the file of the store.
pub fn secret_store(config: &Config) -> Arc<SecretStore> {
    Arc::new(SecretStore::new(&config.data, config.secrets_key.clone()))
}

/// Serves the demo API on a free loopback port until `stop` is cancelled, and returns the origin of the API.
async fn start_demo(stop: &CancellationToken) -> Result<Origin, Failure> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listener = bind_listener(loopback, 0).await?;
    let address = listener.local_addr().map_err(|cause| Failure::Listen { address: loopback, port: 0, cause })?;
    let stop = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = demo::serve(listener, stop.cancelled_owned()).await {
            tracing::error!(%error, "the demo API failed and is not served any more; restart the server");
        }
    });
    tracing::debug!(%address, "the demo API is served");
    // An address with a port is always a valid origin, so this error does not occur.
    Origin::parse(&format!("http://{address}")).map_err(|_| Failure::Listen {
        address: loopback,
        port: address.port(),
        cause: std::io::ErrorKind::InvalidInput.into(),
    })
}

pub async fn bind_listener(address: IpAddr, port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind(SocketAddr::new(address, port)).await.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::AddrInUse => Failure::PortTaken { address, port },
        _ => Failure::Listen { address, port, cause },
    })
}

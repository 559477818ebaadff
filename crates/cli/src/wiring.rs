//! Builds the app from the settings: catalogs, storage, upstream, engine, the demo API.
//! Invariant: a mistake in the settings fails here, before a request is answered.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use access::{CallRates, Tenants};
use app::{Admission, App};
use base::Origin;
use catalog::Catalog;
use session::{Ports, Service};
use store::secrets::SecretStore;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::catalogs::Catalogs;
use crate::config::{AuthMode, Config};
use crate::failure::Failure;
use crate::ports::{FilePresence, OperatorSecrets, SECRETS_KEY, SystemClock, SystemEntropy};
use crate::{shipped, tenants};

/// The app of a configuration, and the catalogs that it starts with.
pub struct Wired {
    pub app: Arc<App>,
    pub catalogs: Catalogs,
}

/// Builds the app of a configuration. The demo API runs until `stop` is cancelled.
pub async fn app(config: &Config, stop: &CancellationToken) -> Result<Wired, Failure> {
    let catalogs = Catalogs::load(config)?;
    let mut routes = BTreeMap::new();
    if config.demo {
        // The route is for the origin of the shipped catalog even if a file replaces it, because sessions may have pinned the shipped one.
        routes.insert(shipped::demo()?.origin.clone(), start_demo(stop).await?);
    }
    let (store, blobs) = (store(config)?, blobs(config)?);
    let secret_store = secret_store(config);
    if secret_store.has_key() {
        secret_store.check()?;
    } else if config.data.join(store::secrets::FILE_NAME).exists() {
        tracing::warn!("there are encrypted secrets, but no key ({}) to open them", SECRETS_KEY);
    }
    let keys_required = keys_required(config, store.as_ref()).await?;
    let ports = Ports {
        store,
        blobs,
        upstream: Arc::new(upstream(config, routes, secret_store)?),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    let service = Service::new(ports, catalogs.registry(), config.limits.clone())
        .with_teaching(config.teaching)
        .with_retention(config.retention.clone())
        .with_tenants(Tenants::new(tenants::allowed(&config.tenants)))
        .with_delegated(config.delegated)
        .with_keys(tenants::keys(&config.tenants))
        .with_js(Arc::new(engine(config)?), Arc::new(presence(config)?), config.js.clone());
    let rates = CallRates::new(tenants::calls_per_minute(&config.tenants));
    let app = App::new(Arc::new(service), Admission { keys_required, rates });
    Ok(Wired { app: Arc::new(app), catalogs })
}

/// Returns whether there can be keys at all. It makes no data folder, so that a start that is refused leaves nothing behind.
pub fn may_have_keys(config: &Config) -> bool {
    match config.auth {
        Some(mode) => mode == AuthMode::Keys,
        None => !tenants::keys(&config.tenants).is_empty() || config.database.exists(),
    }
}

/// Returns whether requests need a key. Unless the settings say it, they do if a key was ever made, even if it was revoked.
async fn keys_required(config: &Config, store: &dyn ::ports::Store) -> Result<bool, Failure> {
    if let Some(mode) = config.auth {
        return Ok(mode == AuthMode::Keys);
    }
    if !tenants::keys(&config.tenants).is_empty() {
        return Ok(true);
    }
    for tenant in tenants::all(&config.tenants) {
        if !access::keys::list(store, &tenant).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Starts the engine. Its compiled code is kept in the data folder, because compiling it takes seconds.
fn engine(config: &Config) -> Result<js::Engine, Failure> {
    let settings = js::Settings { code_cache: Some(config.data.join("engines")), ..js::Settings::default() };
    js::Engine::start(&settings).map_err(Failure::Engine)
}

fn presence(config: &Config) -> Result<FilePresence, Failure> {
    // Beside the database, because processes that share a database must find each other, wherever their blobs are.
    let folder = config.database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
    FilePresence::join(folder).map_err(|cause| Failure::Presence { path: folder.to_owned(), cause })
}

/// Opens the embedded database, and makes it if it does not exist.
pub fn store(config: &Config) -> Result<Arc<dyn ::ports::Store>, Failure> {
    Ok(Arc::new(::store::sqlite::SqliteStore::open(&config.database)?))
}

/// Opens the place for blobs, and makes it if it is a folder that does not exist. Remote storage is not asked yet.
pub fn blobs(config: &Config) -> Result<Arc<dyn ::ports::Blobs>, Failure> {
    config.blobs.open(&config.database, &secrets(config, secret_store(config)))
}

/// Returns the upstream for a catalog outside of an app. If the catalog's origin is the demo's, the demo API runs until `stop` is
/// cancelled.
pub async fn upstream_for(
    config: &Config,
    catalog: &Catalog,
    stop: &CancellationToken,
) -> Result<upstream::HttpUpstream, Failure> {
    let mut routes = BTreeMap::new();
    if config.demo && catalog.origin == shipped::demo()?.origin {
        routes.insert(catalog.origin.clone(), start_demo(stop).await?);
    }
    upstream(config, routes, secret_store(config))
}

/// Returns an upstream that is not for a catalog, such as for fetching a specification.
pub fn upstream_alone(config: &Config) -> Result<upstream::HttpUpstream, Failure> {
    upstream(config, BTreeMap::new(), secret_store(config))
}

fn upstream(
    config: &Config,
    routes: BTreeMap<Origin, Origin>,
    secret_store: Arc<SecretStore>,
) -> Result<upstream::HttpUpstream, Failure> {
    let options = upstream::Options { routes, ..upstream::Options::from(&config.limits) };
    Ok(upstream::HttpUpstream::new(options, Arc::new(secrets(config, secret_store)), Arc::new(SystemClock))?)
}

/// Returns the secrets of the operator.
pub fn secrets(config: &Config, store: Arc<SecretStore>) -> OperatorSecrets {
    OperatorSecrets::new(config.secrets_dir.clone(), store)
}

/// Returns the store of encrypted secrets in the data folder. Its file need not exist.
pub fn secret_store(config: &Config) -> Arc<SecretStore> {
    Arc::new(SecretStore::new(&config.data, config.secrets_key.clone()))
}

/// Serves the demo API on a free loopback port and returns its origin.
async fn start_demo(stop: &CancellationToken) -> Result<Origin, Failure> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listener = listen(loopback, 0).await?;
    let address = listener.local_addr().map_err(|cause| Failure::Listen { address: loopback, port: 0, cause })?;
    let stop = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = demo::serve(listener, stop.cancelled_owned()).await {
            tracing::error!(%error, "the demo API stopped");
        }
    });
    tracing::debug!(%address, "the demo API is up");
    // An address and a port are always an origin.
    Origin::parse(&format!("http://{address}")).map_err(|_| Failure::Listen {
        address: loopback,
        port: address.port(),
        cause: std::io::ErrorKind::InvalidInput.into(),
    })
}

pub async fn listen(address: IpAddr, port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind(SocketAddr::new(address, port)).await.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::AddrInUse => Failure::PortTaken { address, port },
        _ => Failure::Listen { address, port, cause },
    })
}

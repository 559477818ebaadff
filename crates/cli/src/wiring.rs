//! Settings to a running service: catalogs, storage, upstream, the demo API.
//! Invariant: what can fail fails here, before anything listens.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Origin;
use catalog::{Catalog, Registry};
use session::{Ports, Service};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, read_text};
use crate::failure::Failure;
use crate::ports::{OperatorSecrets, SystemClock, SystemEntropy};
use crate::shipped;

/// The service of a configuration, with the demo API running beside it until `stop`.
pub async fn service(config: &Config, stop: &CancellationToken) -> Result<Arc<Service>, Failure> {
    let registry = registry(config)?;
    let mut routes = BTreeMap::new();
    if let Some(demo) = registry.get("demo").filter(|_| config.demo) {
        routes.insert(demo.origin.clone(), start_demo(stop).await?);
    }
    let storage = storage(&config.data)?;
    let ports = Ports {
        store: storage.store,
        blobs: storage.blobs,
        upstream: Arc::new(upstream(config, routes)?),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    Ok(Arc::new(Service::new(ports, registry, config.limits.clone())))
}

pub struct Storage {
    pub store: Arc<dyn ::ports::Store>,
    pub blobs: Arc<dyn ::ports::Blobs>,
}

/// Opens (or makes) the embedded store in the data folder.
pub fn storage(data: &Path) -> Result<Storage, Failure> {
    let store = store::sqlite::SqliteStore::open(&data.join(store::sqlite::FILE_NAME))?;
    let blobs = store::blobs::FileBlobs::open(&data.join("blobs"))?;
    Ok(Storage { store: Arc::new(store), blobs: Arc::new(blobs) })
}

fn upstream(config: &Config, routes: BTreeMap<Origin, Origin>) -> Result<upstream::HttpUpstream, Failure> {
    let options = upstream::Options { routes, ..upstream::Options::from(&config.limits) };
    Ok(upstream::HttpUpstream::new(options, Arc::new(secrets(config)), Arc::new(SystemClock))?)
}

/// Where the operator keeps secrets.
pub fn secrets(config: &Config) -> OperatorSecrets {
    OperatorSecrets::new(config.secrets_dir.clone())
}

pub fn registry(config: &Config) -> Result<Registry, Failure> {
    let mut own = Vec::new();
    for folder in &config.catalogs {
        own.extend(catalogs_in(folder)?);
    }
    let shipped = shipped::beside(&own, config.demo)?;
    Ok(Registry::new(own.into_iter().chain(shipped))?)
}

/// Every catalog of a folder, in the order of file names.
pub fn catalogs_in(folder: &Path) -> Result<Vec<Arc<Catalog>>, Failure> {
    let unreadable = |cause| Failure::Unreadable { path: folder.to_owned(), cause };
    if !folder.exists() {
        return Err(Failure::Missing { path: folder.to_owned() });
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|e| e == "yaml" || e == "yml") {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|path| Ok(Arc::new(catalog::read(&path.display().to_string(), &read_text(path)?)?))).collect()
}

/// Serves the demo API on a free loopback port and says where.
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

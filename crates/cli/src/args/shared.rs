//! The flags that several commands share: server settings, data folder, storage, and catalog folders.
//! Invariant: a flag overrides the corresponding setting of the configuration file.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// The server settings that can also be given as flags.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// The data folder, which contains the database, the blobs and the encrypted secrets
    #[arg(long, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Offer every catalog (*.yaml, *.yml) in this folder, and reload the folder when a file changes; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not start if a catalog has a mistake; without this flag the server reports the mistake and leaves the catalog out
    #[arg(long)]
    pub strict_catalogs: bool,
    /// Do not serve the demo API, and do not offer the demo catalog
    #[arg(long)]
    pub no_demo: bool,
    /// Listen on this port; 0 chooses a free port
    #[arg(long)]
    pub port: Option<u16>,
    /// Listen on this IP address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

/// The flags that put the database or the blobs outside of the data folder.
// `--directory-path`, `--s3-bucket` and `--cache-dir` have the names that other servers of this kind use for the same settings.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageArgs {
    /// The place of heaps and other blobs: a folder, or s3://BUCKET/PREFIX
    #[arg(long, global = true, value_name = "PLACE")]
    pub blobs: Option<String>,
    /// A local folder for copies of the blobs that are in S3
    #[arg(long, global = true, value_name = "DIR", visible_alias = "cache-dir")]
    pub blob_cache: Option<PathBuf>,
    /// The same as --blobs DIR
    #[arg(long, global = true, value_name = "DIR")]
    pub directory_path: Option<PathBuf>,
    /// The same as --blobs s3://NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub s3_bucket: Option<String>,
    /// The database file; if PATH is a folder, the database is a file in that folder
    #[arg(long, global = true, value_name = "PATH")]
    pub session_db_path: Option<PathBuf>,
    /// Begin with an empty database although the folder of the blobs has blobs; without this flag a missing database is an error
    #[arg(long, global = true)]
    pub new: bool,
}

/// The flags of a command that opens the data folder and takes no catalog folders.
#[derive(Debug, Clone, Args)]
pub struct DataFolderArgs {
    /// The data folder, which contains the database, the blobs and the encrypted secrets
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// The flags of a command that works with sessions in the data folder.
#[derive(Debug, Clone, Default, Args)]
pub struct ServiceArgs {
    /// The data folder, which contains the database, the blobs and the encrypted secrets
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Offer every catalog (*.yaml, *.yml) in this folder; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not serve the demo API, and do not offer the demo catalog
    #[arg(long, global = true)]
    pub no_demo: bool,
}

/// The flags of a command that only reads catalogs.
#[derive(Debug, Clone, Default, Args)]
pub struct CatalogFolders {
    /// Load every catalog (*.yaml, *.yml) in this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not load the demo catalog
    #[arg(long)]
    pub no_demo: bool,
}

impl From<&DataFolderArgs> for Settings {
    fn from(args: &DataFolderArgs) -> Self {
        Settings { data: args.data.clone(), storage: args.storage.clone(), ..Settings::default() }
    }
}

impl From<&ServiceArgs> for Settings {
    fn from(args: &ServiceArgs) -> Self {
        Settings {
            data: args.data.clone(),
            storage: args.storage.clone(),
            catalogs: args.catalogs.clone(),
            no_demo: args.no_demo,
            ..Settings::default()
        }
    }
}

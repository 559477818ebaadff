//! The flags that several commands share: the settings of a server, the data folder, the storage, folders of catalogs.
//! Invariant: a flag overrides the setting of the same meaning in the configuration file.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// The settings of a server that have a flag.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// The data folder: it keeps the database, the blobs and the encrypted secrets
    #[arg(long, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Offer every catalog (*.yaml, *.yml) in this folder, and watch it for changes; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not start if a catalog cannot be offered; without this flag it is reported and left out
    #[arg(long)]
    pub strict_catalogs: bool,
    /// Do not serve the demo API, and leave its catalog out
    #[arg(long)]
    pub no_demo: bool,
    /// Listen on this port (0 chooses a free one)
    #[arg(long)]
    pub port: Option<u16>,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

/// The places of the database and the blobs, if they are not in the data folder.
// `--directory-path`, `--s3-bucket` and `--cache-dir` are the names that other servers of this kind use for the same settings.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageArgs {
    /// Keep heaps and other blobs here: a folder, or s3://BUCKET/PREFIX
    #[arg(long, global = true, value_name = "PLACE")]
    pub blobs: Option<String>,
    /// Keep copies of blobs that are in S3 in this folder
    #[arg(long, global = true, value_name = "DIR", visible_alias = "cache-dir")]
    pub blob_cache: Option<PathBuf>,
    /// The same as --blobs DIR
    #[arg(long, global = true, value_name = "DIR")]
    pub directory_path: Option<PathBuf>,
    /// The same as --blobs s3://NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub s3_bucket: Option<String>,
    /// Keep the database in this file; if PATH is a folder, in a file in it
    #[arg(long, global = true, value_name = "PATH")]
    pub session_db_path: Option<PathBuf>,
}

/// The flags of a command that works on the data folder but offers no catalogs of its own.
#[derive(Debug, Clone, Args)]
pub struct DataFolderArgs {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// The flags of a command that works with sessions in the data folder.
#[derive(Debug, Clone, Default, Args)]
pub struct ServiceArgs {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Also offer every catalog (*.yaml, *.yml) in this folder; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not serve the demo API, and leave its catalog out
    #[arg(long, global = true)]
    pub no_demo: bool,
}

/// The flags of a command that only reads catalogs.
#[derive(Debug, Clone, Default, Args)]
pub struct CatalogFolders {
    /// Load every catalog (*.yaml, *.yml) in this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Leave the demo API and its catalog out
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

//! Where rows and blobs are kept, where that is not the data folder.
//! Invariant: every command that opens the storage takes these; a name that others know is the same setting.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub struct Keep {
    /// Keep heaps and other large things here: a folder, or s3://BUCKET/PREFIX
    #[arg(long, global = true, value_name = "PLACE")]
    pub blobs: Option<String>,
    /// Keep copies of what is in S3 in this folder
    #[arg(long, global = true, value_name = "DIR", visible_alias = "cache-dir")]
    pub blob_cache: Option<PathBuf>,
    /// The same as --blobs DIR
    #[arg(long, global = true, value_name = "DIR")]
    pub directory_path: Option<PathBuf>,
    /// The same as --blobs s3://NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub s3_bucket: Option<String>,
    /// Keep the database in this file, or in this folder where there is one
    #[arg(long, global = true, value_name = "PATH")]
    pub session_db_path: Option<PathBuf>,
}

//! The command lines of `tokamak token` and `tokamak secret`.
//! Invariant: neither a key nor the value of a secret is an argument, because other users of the machine can read those.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataFolderArgs;

#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(flatten)]
    pub folder: DataFolderArgs,
    #[command(subcommand)]
    pub action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make an API key and print it once; only its digest is stored
    New {
        /// The tenant that the key belongs to: a table [tenants.NAME] of the settings, or `local`
        #[arg(long, value_name = "NAME")]
        tenant: String,
        /// The person or program within the tenant that uses the key
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// Store nothing; print the line for `keys` in the settings that makes the key valid
        #[arg(long)]
        print: bool,
    },
    /// List all keys by their ids
    List {
        /// List only the keys of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Make a key invalid from the next request on
    Revoke {
        /// The id of the key or its beginning, as `tokamak token list` prints it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct SecretArgs {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// Store a secret, or replace it; its value is read from standard input
    Set {
        /// The name that catalogs use for the secret
        name: String,
        // Accepted only to be refused without being repeated. clap would print an unknown argument, and so the value.
        #[arg(hide = true)]
        value: Option<std::ffi::OsString>,
    },
    /// Print the names of the secrets
    List,
    /// Remove a secret
    Remove {
        /// The name that catalogs use for the secret
        name: String,
    },
}

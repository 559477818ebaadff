//! The arguments and subcommands of `tokamak token` and `tokamak secret`.
//! Invariant: no argument is an API key or the value of a secret, because other users of the machine can read the arguments of a process.

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
    /// Make an API key and print it; the key cannot be printed again, because only its digest is stored
    New {
        /// The tenant that the key belongs to: the NAME of a table [tenants.NAME] of the settings, or `local` if they have none
        #[arg(long, value_name = "NAME")]
        tenant: String,
        /// The person or program of the tenant that uses the key; the default is `default`
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// Print the entry to add to `keys` in the settings, and do not store the digest of the key
        #[arg(long)]
        print: bool,
    },
    /// List all API keys by their ids; the keys themselves are not stored
    List {
        /// List only the keys of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Revoke an API key: the server refuses the next request that uses it
    Revoke {
        /// The id of the key as `tokamak token list` prints it, or the first characters of the id
        id: String,
    },
    /// Delete all API keys of the store, revoked ones included; a server that starts afterwards may answer without a key
    DeleteAll {
        /// Confirm the deletion
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct SecretArgs {
    /// The data folder, which contains the file of encrypted secrets
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// Store or replace a secret; the value is read from standard input
    Set {
        /// The name that catalogs use for the secret
        name: String,
        // The command line accepts a value only to refuse it: clap would print an unexpected argument, and so reveal the secret.
        #[arg(hide = true)]
        value: Option<std::ffi::OsString>,
    },
    /// Print the names of the encrypted secrets, and the origins to which secrets are bound
    List,
    /// Allow that a secret is sent to these origins; a secret without a binding is sent nowhere
    Bind {
        /// The name that catalogs use for the secret
        name: String,
        /// Scheme, host and port of the API, or of its token endpoint: https://api.example.com
        #[arg(required = true, value_name = "ORIGIN")]
        origins: Vec<String>,
    },
    /// Remove a binding that `tokamak secret bind` made
    Unbind {
        /// The name that catalogs use for the secret
        name: String,
        /// The origin; without it, all bindings of the secret are removed
        #[arg(value_name = "ORIGIN")]
        origin: Option<String>,
    },
    /// Remove a secret from the encrypted store
    Remove {
        /// The name that catalogs use for the secret
        name: String,
    },
}

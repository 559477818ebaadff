//! The command line of `tokamak token`.
//! Invariant: no argument is a key.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Keep;

#[derive(Debug, Args)]
pub struct Token {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
    #[command(subcommand)]
    pub action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a key and print it, once; only its digest is kept
    New {
        /// Whose it is: a [tenants.NAME] of the settings, or `local`
        #[arg(long, value_name = "NAME")]
        tenant: String,
        /// Who has it, within the tenant
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// Keep nothing; also print the line that lets it in, for `keys` in the settings
        #[arg(long)]
        print: bool,
    },
    /// List the keys there are, by id
    List {
        /// Only this tenant's
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Let a key in no longer, from the next request on
    Revoke {
        /// The beginning of its id, as `list` prints it
        id: String,
    },
}

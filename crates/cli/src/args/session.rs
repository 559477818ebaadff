//! The command lines of `tokamak context`, `plan`, `run`, `session`, `artifact` and `gc`.
//! Invariant: they work on the data folder itself, also while a server uses it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{GraphForm, ServiceArgs};

#[derive(Debug, Args)]
pub struct ContextArgs {
    /// The task, in one stable phrase; the same intent finds the same session again
    pub intent: String,
    /// An entity to teach, as api:Entity; api:Entity:write also teaches a write by its name, api:Entity:* all writes
    #[arg(long = "seed", value_name = "API:ENTITY", required = true)]
    pub seeds: Vec<String>,
    /// A write to teach even if the intent does not mention it
    #[arg(long = "capability", value_name = "NAME")]
    pub ranked: Vec<String>,
    /// Print the whole table again
    #[arg(long)]
    pub replay: bool,
    /// Move the session to the newest catalogs, with new symbols
    #[arg(long)]
    pub refresh: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The program; by default it is read from --file or from standard input
    pub program: Option<String>,
    /// Read the program from this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    pub file: Option<PathBuf>,
    /// The session: a slot, an id, or its intent
    #[arg(long, default_value = "s0", value_name = "SESSION")]
    pub session: String,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Run the reviewed plan that `tokamak plan` printed with this name, such as pc0
    #[arg(long, value_name = "REF")]
    pub commit: Option<String>,
    /// Run the program even if its plan needs a review
    #[arg(long)]
    pub force: bool,
    /// With --force: run the program only once for this id; a second run prints the first result again
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Wait until the run ends, however long that takes; without this flag, a long run prints a handle
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(subcommand)]
    pub action: SessionAction,
}

#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// List all sessions, the last used first
    List,
    /// Show what a session holds, and each of its calls
    Show {
        /// A slot, an id, or its intent
        session: String,
        /// Draw the history of its heap instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<GraphForm>,
    },
    /// Print the log of a session: its runs of JavaScript, and the heap that each of them left
    Log {
        /// A slot, an id, its intent, or the name of a connection
        session: String,
        /// Draw the history of its heap instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<GraphForm>,
        /// Write the graph to this file
        #[arg(long, short, value_name = "FILE", requires = "graph")]
        output: Option<PathBuf>,
    },
    /// Begin a session as a copy of another; its writes stop at the plan until the copy is promoted
    Fork {
        /// A slot, an id, or its intent
        session: String,
        /// The intent of the copy, which finds it again
        intent: String,
        /// Start from the heap of this entry of the log
        #[arg(long, value_name = "INDEX")]
        at: Option<u64>,
    },
    /// Let a fork make writes
    Promote {
        /// A slot, an id, or its intent
        session: String,
    },
    /// Make the heap of an earlier entry of the log the head of a session again
    Rewind {
        /// A slot, an id, or its intent
        session: String,
        /// The index of the entry, as `tokamak session log` prints it
        index: u64,
    },
    /// Remove a session with its symbols, results, plans, handles, trace and log
    Rm {
        /// A slot, an id, its intent, or the name of a connection
        session: String,
    },
}

#[derive(Debug, Args)]
pub struct ArtifactArgs {
    /// The URI that an answer printed, such as plasm://session/s0/r/1 (a result) or plasm://session/s0/p/2 (a plan)
    pub uri: String,
    /// Keep the result for as long as its session
    #[arg(long, conflicts_with = "unpin")]
    pub pin: bool,
    /// Keep the result no longer than others
    #[arg(long)]
    pub unpin: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

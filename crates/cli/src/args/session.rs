//! The arguments and subcommands of `tokamak context`, `plan`, `run`, `session`, `artifact` and `gc`.
//! Invariant: these commands open the data folder directly, even while a server uses the same folder.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{GraphForm, ServiceArgs};

#[derive(Debug, Args)]
pub struct ContextArgs {
    /// The task in one sentence; the same sentence finds the same session again
    pub intent: String,
    /// An entity to teach: api:Entity; api:Entity:NAME also teaches the write NAME, and api:Entity:* all writes of the entity
    #[arg(long = "seed", value_name = "API:ENTITY", required = true)]
    pub seeds: Vec<String>,
    /// The name of a write to teach although the intent does not mention the write
    #[arg(long = "capability", value_name = "NAME")]
    pub ranked: Vec<String>,
    /// Print the whole table of the session again
    #[arg(long)]
    pub replay: bool,
    /// Move the session to the newest versions of its catalogs; all symbols of the session change
    #[arg(long)]
    pub refresh: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The program; without this argument the program is read from --file, or else from standard input
    pub program: Option<String>,
    /// Read the program from this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    pub file: Option<PathBuf>,
    /// The slot, the id or the intent of the session
    #[arg(long, default_value = "s0", value_name = "SESSION")]
    pub session: String,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Run the reviewed plan with this name; `tokamak plan` prints the name, such as pc0
    #[arg(long, value_name = "REF")]
    pub commit: Option<String>,
    /// Run the program without a review of its plan
    #[arg(long)]
    pub force: bool,
    /// With --force: run the program only once for this id; a second command with this id prints the result of the first
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Wait until the run ends; without this flag the command prints a handle for a long run, and the run continues
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
    /// Show the entities and catalogs of a session, and each call that the session made
    Show {
        /// The slot, the id or the intent of the session
        session: String,
        /// Draw the history of the session's heap instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<GraphForm>,
    },
    /// Print the log of a session: each run of JavaScript, with the heap after the run
    Log {
        /// The slot, the id or the intent of a logical session, or the name of a named session
        session: String,
        /// Draw the history of the session's heap instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<GraphForm>,
        /// Write the graph to this file
        #[arg(long, short, value_name = "FILE", requires = "graph")]
        output: Option<PathBuf>,
    },
    /// Copy a session; the copy plans writes but does not make them until it is promoted
    Fork {
        /// The slot, the id or the intent of the session
        session: String,
        /// The intent of the copy; the same intent finds the copy again
        intent: String,
        /// Start the copy from the heap of the log entry with this index; the default is the session's current heap
        #[arg(long, value_name = "INDEX")]
        at: Option<u64>,
    },
    /// Allow a forked session to make writes
    Promote {
        /// The slot, the id or the intent of the session
        session: String,
    },
    /// Set a session back to the heap of an earlier log entry; the next script starts from that heap
    Rewind {
        /// The slot, the id or the intent of the session
        session: String,
        /// The index of the log entry, as `tokamak session log` prints it
        index: u64,
    },
    /// Remove a session with its symbols, results, plans, handles, trace and log
    Rm {
        /// The slot, the id or the intent of a logical session, or the name of a named session
        session: String,
    },
}

#[derive(Debug, Args)]
pub struct ArtifactArgs {
    /// The URI that an answer printed, such as plasm://session/s0/r/1 (a result) or plasm://session/s0/p/2 (a plan)
    pub uri: String,
    /// Keep the result until its session is removed
    #[arg(long, conflicts_with = "unpin")]
    pub pin: bool,
    /// Undo --pin, so that the result expires like other results
    #[arg(long)]
    pub unpin: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

#[derive(Debug, Args)]
pub struct GcArgs {
    /// Print how much would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
}

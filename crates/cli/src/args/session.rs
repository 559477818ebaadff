//! The command line of sessions: `context`, `plan`, `run`, `session`, `artifact`, `gc`.
//! Invariant: they work on the data folder itself, also beside a server that uses it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Keep, Picture};

/// Where sessions are kept, and what they may use.
#[derive(Debug, Clone, Default, Args)]
pub struct Work {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
    /// Also offer every catalog (*.yaml, *.yml) in this folder; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Leave the demo API and its catalog out
    #[arg(long, global = true)]
    pub no_demo: bool,
}

#[derive(Debug, Args)]
pub struct Context {
    /// What the task is, in one stable phrase; the same intent finds the same session again
    pub intent: String,
    /// An entity to teach, as api:Entity; api:Entity:write adds a write by name, api:Entity:* all of them
    #[arg(long = "seed", value_name = "API:ENTITY", required = true)]
    pub seeds: Vec<String>,
    /// A write to teach even if the intent does not speak of it
    #[arg(long = "capability", value_name = "NAME")]
    pub ranked: Vec<String>,
    /// Print the whole table again
    #[arg(long)]
    pub replay: bool,
    /// Move the session to the newest catalogs, with new symbols
    #[arg(long)]
    pub refresh: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, Args)]
pub struct Plan {
    /// The program; read from --file or standard input when left out
    pub program: Option<String>,
    /// Read the program from this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    pub file: Option<PathBuf>,
    /// The session: a slot, an id, or its intent
    #[arg(long, default_value = "s0", value_name = "SESSION")]
    pub session: String,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub plan: Plan,
    /// Run the plan that was shown under this ref
    #[arg(long, value_name = "REF")]
    pub commit: Option<String>,
    /// Run even when the plan needs a review
    #[arg(long)]
    pub force: bool,
    /// With --force: the same id never runs twice, and answers the first result again
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Wait for the end, however long it takes; otherwise a long run answers with a handle
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Args)]
pub struct Sessions {
    #[command(flatten)]
    pub work: Work,
    #[command(subcommand)]
    pub action: SessionAction,
}

#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// All sessions, the last used first
    List,
    /// What a session holds, and each call of it
    Show {
        /// A slot, an id, or its intent
        session: String,
        /// Draw the lineage of its heap instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<Picture>,
    },
    /// The log of a session's runs of JavaScript and the heaps they left
    Log {
        /// A slot, an id, its intent, or the name of a connection
        session: String,
        /// Draw its lineage instead
        #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "mermaid")]
        graph: Option<Picture>,
        /// Write the picture to this file
        #[arg(long, short, value_name = "FILE", requires = "graph")]
        output: Option<PathBuf>,
    },
    /// Begin a session as a copy of another one; its writes stop at the plan until it is promoted
    Fork {
        /// A slot, an id, or its intent
        session: String,
        /// What finds the fork again
        intent: String,
        /// Start from the heap of this entry of its log
        #[arg(long, value_name = "INDEX")]
        at: Option<u64>,
    },
    /// Let a fork write
    Promote {
        /// A slot, an id, or its intent
        session: String,
    },
    /// Move the head of a session back to an entry of its log
    Rewind {
        /// A slot, an id, or its intent
        session: String,
        index: u64,
    },
    /// End a session: its symbols, results, plans, handles, trace and log
    Rm {
        /// A slot, an id, its intent, or the name of a connection
        session: String,
    },
}

#[derive(Debug, Args)]
pub struct Artifact {
    /// As an answer named it: plasm://session/s0/r/1, plasm://session/s0/p/2
    pub uri: String,
    /// Keep it for as long as its session
    #[arg(long, conflicts_with = "unpin")]
    pub pin: bool,
    /// Keep it no longer than others
    #[arg(long)]
    pub unpin: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// Say what would go, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub work: Work,
}

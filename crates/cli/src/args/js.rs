//! The command lines of `tokamak js`, `execution` and `heap`.
//! Invariant: a heap is named by its key, a session as everywhere: by its slot, id or intent, or by the name of a connection.

use std::path::PathBuf;

use base::Digest;
use clap::{Args, Subcommand};

use super::Keep;

#[derive(Debug, Args)]
pub struct Js {
    /// JavaScript or TypeScript, run in this order on one heap; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Restore the heap from storage before each file, as another process would
    #[arg(long)]
    pub cold: bool,
    /// Start from this heap instead of a fresh one
    #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
    pub heap: Option<Digest>,
    /// Run in this session: a logical one (by its slot, id or intent) goes on from where it stands, one of any other name
    /// starts fresh unless the settings say `resume_named_sessions`
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Tag the heap that the last file leaves; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub tag: Vec<(String, String)>,
    /// End each file after so many milliseconds
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
    /// Let each file use so many megabytes
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<u64>,
    #[command(flatten)]
    pub place: Place,
}

/// Where things are kept.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
}

#[derive(Debug, Args)]
pub struct Execution {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub action: ExecutionAction,
}

#[derive(Debug, Subcommand)]
pub enum ExecutionAction {
    /// List runs of JavaScript, the newest first
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show the state and the result of a run
    Show { id: String },
    /// Print what a run wrote to its console
    Output {
        id: String,
        /// From this line, counted from 0
        #[arg(long, value_name = "N", default_value_t = 0)]
        line_offset: u64,
        /// At most so many lines
        #[arg(long, value_name = "N")]
        line_limit: Option<u64>,
    },
    /// End a run
    Cancel { id: String },
}

#[derive(Debug, Args)]
pub struct Heap {
    #[command(flatten)]
    pub place: Place,
    #[command(subcommand)]
    pub action: HeapAction,
}

#[derive(Debug, Subcommand)]
pub enum HeapAction {
    /// List heaps by their keys
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// After this one
        #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
        after: Option<Digest>,
    },
    /// Show what is known of a heap: sizes, engine, what it came from, tags
    Show { key: String },
    /// Show which globals two heaps differ in
    Diff { a: String, b: String },
    /// Write a heap, with the engine it needs, to one file
    Export {
        key: String,
        /// The file to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Take in a file that `export` wrote; prints the key. The heap is tagged, so that it is kept
    Import {
        file: PathBuf,
        /// Beside `imported`, which says when; may be given several times
        #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
        tag: Vec<(String, String)>,
    },
    /// Keep a heap until it is unpinned
    Pin {
        key: String,
        /// Keep it no longer than others
        #[arg(long)]
        off: bool,
    },
    /// Add tags to a heap, or remove them
    Tag {
        key: String,
        /// What to set
        #[arg(value_name = "KEY=VALUE", value_parser = pair)]
        tags: Vec<(String, String)>,
        /// What to remove; may be given several times
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
    },
    /// Remove runs, logs and heaps that are kept no longer, as `tokamak gc` does with everything
    Gc {
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
    /// Find heaps that have all of these tags
    Find {
        #[arg(value_name = "KEY=VALUE", value_parser = pair)]
        tags: Vec<(String, String)>,
    },
}

fn pair(text: &str) -> Result<(String, String), PairError> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(PairError),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("write KEY=VALUE")]
struct PairError;

//! The command lines of `tokamak js`, `execution` and `heap`.
//! Invariant: a heap is named by its key. A session is named by its slot, id or intent, or by the name of a connection.

use std::path::PathBuf;

use base::Digest;
use clap::{Args, Subcommand};

use super::DataFolderArgs;

#[derive(Debug, Args)]
pub struct JsArgs {
    /// JavaScript or TypeScript files, which run in this order on one heap; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Load the heap from storage again before each file, as another process would
    #[arg(long)]
    pub cold: bool,
    /// Start from this heap instead of a fresh one
    #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
    pub heap: Option<Digest>,
    /// Run in this session. A logical session (a slot, an id or an intent) continues from its last heap. Any other name is a
    /// named session, which starts fresh unless the settings say `resume_named_sessions`
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Add a tag to the heap after the last file; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_tag)]
    pub tag: Vec<(String, String)>,
    /// Stop a file that runs for longer than this
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
    /// Stop a file that uses more memory than this
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<u64>,
    #[command(flatten)]
    pub folder: DataFolderArgs,
}

#[derive(Debug, Args)]
pub struct ExecutionArgs {
    #[command(flatten)]
    pub folder: DataFolderArgs,
    #[command(subcommand)]
    pub action: ExecutionAction,
}

#[derive(Debug, Subcommand)]
pub enum ExecutionAction {
    /// List runs of JavaScript, the newest first
    List {
        /// List at most N runs
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show the state and the result of a run
    Show {
        /// The id of the run, as `tokamak execution list` prints it
        id: String,
    },
    /// Print what a run wrote to its console
    Output {
        /// The id of the run, as `tokamak execution list` prints it
        id: String,
        /// Start at line N; the first line is 0
        #[arg(long, value_name = "N", default_value_t = 0)]
        line_offset: u64,
        /// Print at most N lines
        #[arg(long, value_name = "N")]
        line_limit: Option<u64>,
    },
    /// Cancel a run
    Cancel {
        /// The id of the run, as `tokamak execution list` prints it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct HeapArgs {
    #[command(flatten)]
    pub folder: DataFolderArgs,
    #[command(subcommand)]
    pub action: HeapAction,
}

#[derive(Debug, Subcommand)]
pub enum HeapAction {
    /// List heaps in the order of their keys
    List {
        /// List at most N heaps
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// List only heaps whose keys come after this key
        #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
        after: Option<Digest>,
    },
    /// Show the properties of a heap: sizes, engine, parents, tags
    Show {
        /// The key of the heap, as `tokamak heap list` prints it
        key: String,
    },
    /// Show the globals that differ between two heaps
    Diff {
        /// The key of the earlier heap
        a: String,
        /// The key of the later heap
        b: String,
    },
    /// Write a heap, with the engine it needs, to one file
    Export {
        /// The key of the heap
        key: String,
        /// The file to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Store the heap of a file that `tokamak heap export` wrote, and print its key. The heap is tagged, so that it is kept
    Import {
        /// The file to read
        file: PathBuf,
        /// A tag to add beside the tag `imported`, which holds the time of the import; may be given several times
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse_tag)]
        tag: Vec<(String, String)>,
    },
    /// Keep a heap until it is unpinned
    Pin {
        /// The key of the heap
        key: String,
        /// Unpin the heap, so that it is kept no longer than others
        #[arg(long)]
        off: bool,
    },
    /// Add tags to a heap, or remove them
    Tag {
        /// The key of the heap
        key: String,
        /// The tags to set
        #[arg(value_name = "KEY=VALUE", value_parser = parse_tag)]
        tags: Vec<(String, String)>,
        /// The name of a tag to remove; may be given several times
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
    },
    /// Remove expired runs of JavaScript, their logs and heaps (`tokamak gc` removes everything that has expired)
    Gc {
        /// Print what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Find heaps that have all of these tags
    Find {
        /// The tags to look for
        #[arg(value_name = "KEY=VALUE", value_parser = parse_tag)]
        tags: Vec<(String, String)>,
    },
}

fn parse_tag(text: &str) -> Result<(String, String), TagError> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(TagError),
    }
}

/// The text of an argument is not a tag.
#[derive(Debug, thiserror::Error)]
#[error("write KEY=VALUE")]
struct TagError;

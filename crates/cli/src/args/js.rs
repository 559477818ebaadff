//! The arguments and subcommands of `tokamak js`, `tokamak execution` and `tokamak heap`.
//! Invariant: an argument names a heap by its key, and a session by its slot, its id, its intent or the name of a connection.

use std::path::PathBuf;

use base::Digest;
use clap::{Args, Subcommand};

use super::DataFolderArgs;

#[derive(Debug, Args)]
pub struct JsArgs {
    /// JavaScript or TypeScript files to run, in this order and on one heap; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Load the heap from storage before each file, as a new process does
    #[arg(long)]
    pub cold: bool,
    /// Start from this heap instead of a fresh one
    #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
    pub heap: Option<Digest>,
    /// Run the files in this session. A slot, an id or an intent names a logical session, which continues from its last heap. Any other
    /// name is that of a named session, which starts with a fresh heap unless the settings have `resume_named_sessions`
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Add a tag to the heap after the last file; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_tag)]
    pub tag: Vec<(String, String)>,
    /// Stop a file that runs for longer than this many milliseconds
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
    /// Stop a file that uses more than this many megabytes of memory
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
    /// Show the state and the result of a run of JavaScript
    Show {
        /// The id of the run, as `tokamak execution list` prints it
        id: String,
    },
    /// Print the console output of a run of JavaScript
    Output {
        /// The id of the run, as `tokamak execution list` prints it
        id: String,
        /// Start at line N of the console output; the first line is 0
        #[arg(long, value_name = "N", default_value_t = 0)]
        line_offset: u64,
        /// Print at most N lines of the console output
        #[arg(long, value_name = "N")]
        line_limit: Option<u64>,
    },
    /// Cancel a run of JavaScript
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
        /// List only heaps whose keys sort after this key, such as the last key of the previous list
        #[arg(long, value_name = "KEY", value_parser = Digest::parse)]
        after: Option<Digest>,
    },
    /// Show the properties of a heap: sizes, engine, parents, tags
    Show {
        /// The key of the heap, as `tokamak heap list` prints it
        key: String,
    },
    /// Show the global variables that differ between two heaps
    Diff {
        /// The key of the earlier heap
        a: String,
        /// The key of the later heap
        b: String,
    },
    /// Write a heap to a file, together with the JavaScript engine that can run it
    Export {
        /// The key of the heap
        key: String,
        /// The file to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Store a heap from a file of `tokamak heap export`, tag the heap so that `tokamak gc` keeps it, and print its key
    Import {
        /// A file that `tokamak heap export` wrote
        file: PathBuf,
        /// A tag to add to the heap; may be given several times. The tag `imported` with the time of the import is always added
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse_tag)]
        tag: Vec<(String, String)>,
    },
    /// Pin a heap: `tokamak gc` keeps the heap until it is unpinned
    Pin {
        /// The key of the heap
        key: String,
        /// Unpin the heap, so that `tokamak gc` may remove it
        #[arg(long)]
        off: bool,
    },
    /// Add tags to a heap, or remove tags from it
    Tag {
        /// The key of the heap
        key: String,
        /// The tags to add; a tag with the same key is replaced
        #[arg(value_name = "KEY=VALUE", value_parser = parse_tag)]
        tags: Vec<(String, String)>,
        /// The key of a tag to remove; may be given several times
        #[arg(long, value_name = "KEY")]
        remove: Vec<String>,
    },
    /// Remove expired runs of JavaScript, their logs and heaps (`tokamak gc` also removes expired sessions and results)
    Gc {
        /// Print how much would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// List the heaps that have all of these tags
    Find {
        /// The tags that a listed heap must have
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

/// The error for an argument that is not of the form `KEY=VALUE`.
#[derive(Debug, thiserror::Error)]
#[error("this is not a tag; write a tag as KEY=VALUE")]
struct TagError;

//! The command line.
//! Invariant: every command and flag says what it does; `--help` is enough to start.

mod catalog;
mod js;
mod keep;
mod session;
mod token;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use catalog::{
    CatalogCheck, CatalogCommand, CatalogImport, CatalogList, CatalogShow, CatalogTest, Folders, ImportKind, Picture,
    Writes,
};
pub use js::{Execution, ExecutionAction, Heap, HeapAction, Js, Place};
pub use keep::Keep;
pub use token::{Token, TokenAction};

pub use session::{Artifact, Context, Gc, Plan, Run, SessionAction, Sessions, Work};

#[derive(Debug, Parser)]
#[command(
    name = "tokamak",
    version,
    about = "Holds an AI agent's working session: teaches a model the part of an API its task needs, then plans and runs small typed programs over it.",
    after_help = "Try it:\n  tokamak demo                 a guided tour, nothing to set up\n  tokamak serve                MCP at http://127.0.0.1:3000/mcp\n  tokamak mcp-config claude    how to connect a host\n  tokamak catalog check FILE   is this catalog right?\n  tokamak doctor               is everything in order here?"
)]
pub struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Read settings from this TOML file (see docs/operations.md)
    #[arg(long, global = true, value_name = "FILE", env = "TOKAMAK_CONFIG")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP and HTTP (or MCP on standard input and output)
    #[command(
        after_help = "Examples:\n  tokamak serve\n  tokamak serve --port 4000 --data ./data\n  tokamak serve --stdio"
    )]
    Serve(Serve),
    /// Walk through a session on the built-in demo API, showing each call and its answer
    Demo,
    /// Check that this machine and these settings can serve
    Doctor(Settings),
    /// Print what to paste into a host to connect it
    McpConfig(McpConfig),
    /// Keep secrets that catalogs name in an encrypted file of the data folder
    #[command(
        after_help = "The key is TOKAMAK_SECRETS_KEY, or what is in the file that `secrets_key_file` names in the settings.\n\nExamples:\n  tokamak secret set TRACKER_TOKEN              asks for the value, without showing it\n  tokamak secret set TRACKER_TOKEN < token.txt\n  tokamak secret list\n  tokamak secret remove TRACKER_TOKEN"
    )]
    Secret(Secret),
    /// Make, list and revoke the API keys that let callers in
    #[command(
        after_help = "Tenants are the tables [tenants.NAME] of the settings.\n\nExamples:\n  tokamak token new --tenant acme --principal alice\n  tokamak token list\n  tokamak token revoke 1f0c9a2b"
    )]
    Token(Token),
    /// List, check, show and try out catalogs: the files that say what an API offers
    #[command(
        subcommand,
        after_help = "Examples:\n  tokamak catalog list\n  tokamak catalog check tracker.yaml\n  tokamak catalog show demo --graph svg -o demo.svg\n  tokamak catalog test demo"
    )]
    Catalog(CatalogCommand),
    /// Find which entities of which APIs a goal needs, as a model would be told
    #[command(
        after_help = "Examples:\n  tokamak discover \"who is assigned to the open bugs on GitHub\"\n  tokamak discover --api stripe \"give a buyer the money back\" --json"
    )]
    Discover(Discover),
    /// Run JavaScript or TypeScript, file after file, on one heap that is kept
    #[command(
        after_help = "Examples:\n  tokamak js setup.js step.ts\n  tokamak js --cold a.js b.js      restores the heap from storage before each\n  tokamak js --session agent step.js\n  echo '1 + 1' | tokamak js -"
    )]
    Js(Js),
    /// List runs of JavaScript, show one, print its output, end it
    #[command(after_help = "Examples:\n  tokamak execution list\n  tokamak execution output ID --line-offset 100")]
    Execution(Execution),
    /// List, compare, carry and tag the heaps that runs of JavaScript leave
    #[command(
        after_help = "Examples:\n  tokamak heap list\n  tokamak heap diff KEY KEY\n  tokamak heap export KEY -o heap.bin\n  tokamak heap tag KEY env=live\n  tokamak heap find env=live"
    )]
    Heap(Heap),
    /// Open a session for an intent, or teach it more, and print its table
    #[command(
        after_help = "Examples:\n  tokamak context \"triage the open tickets\" --seed demo:Ticket --seed demo:Project\n  tokamak context \"triage the open tickets\" --seed demo:Ticket:* --replay"
    )]
    Context(Context),
    /// Print the plan of a program; nothing is called
    #[command(
        after_help = "The session is a slot (s0), an id, or the intent it was opened with.\n\nExamples:\n  tokamak plan 'Ticket{project=\"OPS\"}.limit(5)[title]'\n  tokamak plan --session s1 --file program.plasm\n  echo 'Project[key]' | tokamak plan"
    )]
    Plan(Plan),
    /// Run a program and print its rows
    #[command(
        after_help = "The session is a slot (s0), an id, or the intent it was opened with. A program that changes something is shown first; `--commit pc0` runs it as it was shown.\n\nExamples:\n  tokamak run 'Ticket{project=\"OPS\"}.limit(5)[title]'\n  tokamak run --commit pc0\n  tokamak run 'wait(s0_o1)'\n  tokamak run --json --file program.plasm"
    )]
    Run(Run),
    /// List, show, fork, rewind and remove sessions
    #[command(
        after_help = "Examples:\n  tokamak session list\n  tokamak session show s0\n  tokamak session log agent --graph svg -o agent.svg\n  tokamak session fork s0 \"another way\" --at 3\n  tokamak session rm \"triage the open tickets\""
    )]
    Session(Sessions),
    /// Print a stored result or a plan, all of it
    #[command(
        after_help = "Examples:\n  tokamak artifact plasm://session/s0/r/1\n  tokamak artifact plasm://session/s0/r/1#busy --json\n  tokamak artifact plasm://session/s0/r/1 --pin"
    )]
    Artifact(Artifact),
    /// Remove what is kept no longer: expired sessions and results, and blobs that nothing names
    #[command(after_help = "Examples:\n  tokamak gc --dry-run\n  tokamak gc")]
    Gc(Gc),
    /// Look at a program between the stages of its way to a plan
    #[command(
        after_help = "Examples:\n  echo 'Ticket{state=open}.limit(5)[title]' | tokamak debug plan\n  tokamak debug types program.plasm\n  tokamak debug plan --stages program.plasm"
    )]
    Debug(Debug),
    /// Write a program in its one form
    #[command(
        after_help = "Examples:\n  tokamak fmt program.plasm          rewrites the file\n  tokamak fmt --check program.plasm  fails when it would change\n  tokamak fmt < program.plasm        from standard input to standard output"
    )]
    Fmt(Fmt),
    /// Print the page of an error code: what it means, an example, what to write instead
    #[command(after_help = "Examples:\n  tokamak explain E0204\n  tokamak explain 204")]
    Explain {
        /// As a message shows it
        code: String,
    },
    /// Print shell completions
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// What the server stands on; each overrides the configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// Keep everything in this folder
    #[arg(long, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
    /// Offer every catalog (*.yaml, *.yml) in this folder, and watch it for changes; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Do not start when a catalog cannot be offered; without this it is reported and left out
    #[arg(long)]
    pub strict_catalogs: bool,
    /// Leave the demo API and its catalog out
    #[arg(long)]
    pub no_demo: bool,
    /// Listen on this port (0 chooses a free one)
    #[arg(long)]
    pub port: Option<u16>,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub settings: Settings,
    /// Serve an API from its OpenAPI specification, a file or a URL, without writing a catalog; may be given several times
    #[arg(long, value_name = "FILE|URL")]
    pub openapi: Vec<String>,
    /// Speak MCP on standard input and output instead of HTTP
    #[arg(long)]
    pub stdio: bool,
    /// Print how to connect each host once the server is ready
    #[arg(long)]
    pub connect_help: bool,
    /// Offer only the tools that programs need (core), or all of them
    #[arg(long, value_name = "SET")]
    pub tools: Option<Tools>,
    /// Call the session of a client on standard input so, as X-MCP-Session-Id does over HTTP
    #[arg(long, value_name = "NAME")]
    pub session_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tools {
    Core,
    All,
}

#[derive(Debug, Args)]
pub struct McpConfig {
    /// The host to connect
    pub host: Host,
    /// Where the server is
    #[arg(long, default_value = "http://127.0.0.1:3000/mcp")]
    pub url: String,
    /// Let the host start `tokamak serve --stdio` itself
    #[arg(long)]
    pub stdio: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    Claude,
    Cursor,
    Vscode,
    Codex,
    All,
}

#[derive(Debug, Args)]
pub struct Secret {
    /// The data folder
    #[arg(long, global = true, value_name = "DIR", env = "TOKAMAK_DATA")]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: SecretAction,
}

#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// Store a secret, or replace it; its value comes from standard input
    Set {
        /// What catalogs call it
        name: String,
        /// Taken only to be refused without repeating it, as an unknown argument would be
        #[arg(hide = true)]
        value: Option<std::ffi::OsString>,
    },
    /// Print the names of the secrets
    List,
    /// Forget a secret
    Remove {
        /// What catalogs call it
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct Discover {
    /// The goal, in one sentence
    pub intent: String,
    /// Look only in this API, by its id or an alias; may be given several times
    #[arg(long, value_name = "ID")]
    pub api: Vec<String>,
    /// Show at most so many rows (8 unless given, 32 at most)
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// As this tenant of the settings would be told
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    #[command(flatten)]
    pub folders: Folders,
}

#[derive(Debug, Args)]
pub struct Debug {
    /// What to print
    pub stage: Stage,
    /// The program; standard input when left out or `-`
    pub file: Option<PathBuf>,
    /// Also check against every catalog (*.yaml) in this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Print every stage up to this one
    #[arg(long)]
    pub stages: bool,
}

#[derive(Debug, Args)]
pub struct Fmt {
    /// The program, which is rewritten; standard input, to standard output, when left out or `-`
    pub file: Option<PathBuf>,
    /// Change nothing; fail when the program is not in its one form
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Stage {
    /// What the lexer makes of the text
    Tokens,
    /// What the parser makes of the tokens
    Tree,
    /// What the checker makes of the tree
    Types,
    /// What the planner makes of the checked program
    Plan,
}

//! The command line of `tokamak`: the list of all commands, and the arguments of the commands that have no file in this folder.
//! Invariant: every command and every flag has a help text.

mod catalog;
mod credentials;
mod js;
mod session;
mod shared;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use catalog::{
    CatalogCheckArgs, CatalogCommand, CatalogImportArgs, CatalogListArgs, CatalogShowArgs, CatalogTestArgs, GraphForm,
    ImportKind, Writes,
};
pub use credentials::{SecretAction, SecretArgs, TokenAction, TokenArgs};
pub use js::{ExecutionAction, ExecutionArgs, HeapAction, HeapArgs, JsArgs};
pub use session::{ArtifactArgs, ContextArgs, GcArgs, PlanArgs, RunArgs, SessionAction, SessionsArgs};
pub use shared::{CatalogFolders, DataFolderArgs, ServiceArgs, Settings, StorageArgs};

#[derive(Debug, Parser)]
#[command(
    name = "tokamak",
    version,
    about = "Runs the working sessions of AI agents: it teaches a model the part of an API that a task needs, and plans and runs small typed programs that call this API.",
    after_help = "Try it:\n  tokamak demo                 a guided tour, nothing to set up\n  tokamak serve                MCP at http://127.0.0.1:3000/mcp\n  tokamak mcp-config claude    how to connect a host\n  tokamak catalog check FILE   find mistakes in a catalog\n  tokamak doctor               check this machine and the settings"
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
    Serve(ServeArgs),
    /// Run an example session on the built-in demo API, and print each call with its answer
    Demo,
    /// Check whether a server can run on this machine with these settings
    Doctor(Settings),
    /// Print the command or the settings that connect an MCP host (Claude Code, Cursor, VS Code, Codex) to this server
    McpConfig(McpConfigArgs),
    /// Set, bind, list and remove the secrets that catalogs name; the secrets are stored in an encrypted file of the data folder
    #[command(
        after_help = "The encryption key is the value of TOKAMAK_SECRETS_KEY, or the content of the file that `secrets_key_file` names in the settings.\n\nExamples:\n  tokamak secret set TRACKER_TOKEN              asks for the value without showing it\n  tokamak secret set TRACKER_TOKEN < token.txt\n  tokamak secret bind TRACKER_TOKEN https://tracker.example.com\n  tokamak secret list\n  tokamak secret remove TRACKER_TOKEN"
    )]
    Secret(SecretArgs),
    /// Make, list and revoke the API keys with which clients call this server
    #[command(
        after_help = "Tenants are the tables [tenants.NAME] of the settings.\n\nExamples:\n  tokamak token new --tenant acme --principal alice\n  tokamak token list\n  tokamak token revoke 1f0c9a2b"
    )]
    Token(TokenArgs),
    /// List, check, show, test and import catalogs; a catalog is a file that describes one API
    #[command(
        subcommand,
        after_help = "Examples:\n  tokamak catalog list\n  tokamak catalog check tracker.yaml\n  tokamak catalog show demo --graph svg -o demo.svg\n  tokamak catalog test demo"
    )]
    Catalog(CatalogCommand),
    /// Find the entities that a goal needs, and print the answer of the tool `discover_capabilities`
    #[command(
        after_help = "Examples:\n  tokamak discover \"who is assigned to the open bugs on GitHub\"\n  tokamak discover --api stripe \"give a buyer the money back\" --json"
    )]
    Discover(DiscoverArgs),
    /// Run JavaScript or TypeScript files one after the other on one heap, and store the heap
    #[command(
        after_help = "Examples:\n  tokamak js setup.js step.ts\n  tokamak js --cold a.js b.js      loads the heap from storage before each\n  tokamak js --session agent step.js\n  echo '1 + 1' | tokamak js -"
    )]
    Js(JsArgs),
    /// List runs of JavaScript, show or cancel a run, and print the console output of a run
    #[command(after_help = "Examples:\n  tokamak execution list\n  tokamak execution output ID --line-offset 100")]
    Execution(ExecutionArgs),
    /// List, compare, export, import, pin and tag heaps: the stored memory images of JavaScript runs
    #[command(
        after_help = "Examples:\n  tokamak heap list\n  tokamak heap diff KEY KEY\n  tokamak heap export KEY -o heap.bin\n  tokamak heap tag KEY env=live\n  tokamak heap find env=live"
    )]
    Heap(HeapArgs),
    /// Open the session of an intent, or teach more entities to it, and print the table that a model reads
    #[command(
        after_help = "Examples:\n  tokamak context \"triage the open tickets\" --seed demo:Ticket --seed demo:Project\n  tokamak context \"triage the open tickets\" --seed demo:Ticket:* --replay"
    )]
    Context(ContextArgs),
    /// Print the plan of a program without a call to an API
    #[command(
        after_help = "The session is a slot (s0), an id, or the intent it was opened with.\n\nExamples:\n  tokamak plan 'Ticket{project=\"OPS\"}.limit(5)[title]'\n  tokamak plan --session s1 --file program.plasm\n  echo 'Project[key]' | tokamak plan"
    )]
    Plan(PlanArgs),
    /// Run a program and print the rows that it returns
    #[command(
        after_help = "The session is a slot (s0), an id, or the intent it was opened with. The plan of a program that changes something is printed first; `--commit pc0` runs that plan.\n\nExamples:\n  tokamak run 'Ticket{project=\"OPS\"}.limit(5)[title]'\n  tokamak run --commit pc0\n  tokamak run 'wait(s0_o1)'\n  tokamak run --json --file program.plasm"
    )]
    Run(RunArgs),
    /// List, show, fork, promote, rewind and remove sessions
    #[command(
        after_help = "Examples:\n  tokamak session list\n  tokamak session show s0\n  tokamak session log agent --graph svg -o agent.svg\n  tokamak session fork s0 \"another way\" --at 3\n  tokamak session rm \"triage the open tickets\""
    )]
    Session(SessionsArgs),
    /// Print a stored result or plan completely, or pin a result
    #[command(
        after_help = "Examples:\n  tokamak artifact plasm://session/s0/r/1\n  tokamak artifact plasm://session/s0/r/1#busy --json\n  tokamak artifact plasm://session/s0/r/1 --pin"
    )]
    Artifact(ArtifactArgs),
    /// Remove expired sessions, results and runs, and blobs that nothing refers to
    #[command(after_help = "Examples:\n  tokamak gc --dry-run\n  tokamak gc")]
    Gc(GcArgs),
    /// Print the output of one stage of the compiler for a program: tokens, syntax tree, types or plan
    #[command(
        after_help = "Examples:\n  echo 'Ticket{state=open}.limit(5)[title]' | tokamak debug plan\n  tokamak debug types program.plasm\n  tokamak debug plan --stages program.plasm"
    )]
    Debug(DebugArgs),
    /// Format a program
    #[command(
        after_help = "Examples:\n  tokamak fmt program.plasm          rewrites the file\n  tokamak fmt --check program.plasm  fails if it is not formatted\n  tokamak fmt < program.plasm        from standard input to standard output"
    )]
    Fmt(FmtArgs),
    /// Explain an error code: its meaning, an example, and the correction
    #[command(after_help = "Examples:\n  tokamak explain E0204\n  tokamak explain 204")]
    Explain {
        /// The error code as a message prints it, such as E0204
        code: String,
    },
    /// Print a script that completes `tokamak` commands in a shell
    Completions {
        /// The shell to write the completions for
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub settings: Settings,
    /// Offer an API without a catalog file, from the file or the URL of its OpenAPI specification; may be given several times
    #[arg(long, value_name = "FILE|URL")]
    pub openapi: Vec<String>,
    /// Speak MCP on standard input and output instead of HTTP
    #[arg(long)]
    pub stdio: bool,
    /// Print how to connect each MCP host, as soon as the server is ready
    #[arg(long)]
    pub connect_help: bool,
    /// The set of MCP tools to offer; the default is `tools` of the settings
    #[arg(long, value_name = "SET")]
    pub tools: Option<ToolSetArg>,
    /// With --stdio: the name of the client's session; an HTTP client sends this name in the header X-MCP-Session-Id
    #[arg(long, value_name = "NAME")]
    pub session_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolSetArg {
    /// The tools that open sessions, run programs and run JavaScript
    Core,
    /// All tools, including those that manage heaps and the history of sessions
    All,
}

#[derive(Debug, Args)]
pub struct McpConfigArgs {
    /// The MCP host to connect
    pub host: McpHost,
    /// The URL of the MCP endpoint of a running server
    #[arg(long, default_value = "http://127.0.0.1:3000/mcp")]
    pub url: String,
    /// Print settings with which the host starts `tokamak serve --stdio` instead of connecting to a running server
    #[arg(long)]
    pub stdio: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpHost {
    Claude,
    Cursor,
    Vscode,
    Codex,
    All,
}

#[derive(Debug, Args)]
pub struct DiscoverArgs {
    /// The goal, in one sentence
    pub intent: String,
    /// Search only in the API with this id or alias; may be given several times
    #[arg(long, value_name = "ID")]
    pub api: Vec<String>,
    /// Print at most N entities; the default is 8, the maximum 32
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Search only the capabilities that this tenant may use; NAME is that of a table [tenants.NAME] of the settings
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    #[command(flatten)]
    pub folders: CatalogFolders,
}

#[derive(Debug, Args)]
pub struct DebugArgs {
    /// The stage whose output is printed
    pub stage: DebugStage,
    /// The file of the program; without a file, or with `-`, the program is read from standard input
    pub file: Option<PathBuf>,
    /// Load every catalog (*.yaml, *.yml) of this folder in addition to the demo catalog; may be given several times
    #[arg(long, value_name = "DIR")]
    pub catalogs: Vec<PathBuf>,
    /// Print the output of the earlier stages too
    #[arg(long)]
    pub stages: bool,
}

#[derive(Debug, Args)]
pub struct FmtArgs {
    /// The file of the program to rewrite; without a file, or with `-`, the program is read from standard input and printed formatted
    pub file: Option<PathBuf>,
    /// Do not rewrite the file; fail if the program is not formatted
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum DebugStage {
    /// The tokens of the program, as the lexer returns them
    Tokens,
    /// The syntax tree of the program, as the parser returns it
    Tree,
    /// The program with the type of each expression, as the checker returns it
    Types,
    /// The plan of the program and its digest
    Plan,
}

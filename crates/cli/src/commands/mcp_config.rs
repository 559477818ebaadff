//! `tokamak mcp-config`: prints the command or the settings that connect an MCP host to the server.
//! Invariant: a user can paste each printed text without changes.

use serde_json::json;

use crate::args::{McpConfigArgs, McpHost};
use crate::failure::Failure;
use crate::output::Output;

/// All hosts, in the order in which `tokamak mcp-config all` prints them.
const ALL_HOSTS: [McpHost; 4] = [McpHost::Claude, McpHost::Cursor, McpHost::Codex, McpHost::Vscode];

pub fn run(args: &McpConfigArgs, output: &Output) -> Result<(), Failure> {
    let hosts: &[McpHost] = match args.host {
        McpHost::All => &ALL_HOSTS,
        ref one => std::slice::from_ref(one),
    };
    if output.json {
        let texts: Vec<_> = hosts
            .iter()
            .map(|host| {
                let text = text_to_paste(*host, &args.url, args.stdio);
                json!({"host": name(*host), "where": destination(*host), "paste": text})
            })
            .collect();
        output.value(&json!(texts));
        return Ok(());
    }
    let blocks: Vec<String> = hosts.iter().map(|host| block(*host, &args.url, args.stdio)).collect();
    output.line(&blocks.join("\n\n"));
    Ok(())
}

/// Returns the texts for all hosts, for `tokamak serve --connect-help`.
pub fn all_hosts(url: &str) -> String {
    ALL_HOSTS.map(|host| block(host, url, false)).join("\n\n")
}

fn block(host: McpHost, url: &str, stdio: bool) -> String {
    format!("{} · {}\n{}", name(host), destination(host), indented(&text_to_paste(host, url, stdio)))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn name(host: McpHost) -> &'static str {
    match host {
        McpHost::Claude => "Claude Code",
        McpHost::Cursor => "Cursor",
        McpHost::Vscode => "VS Code",
        McpHost::Codex => "Codex",
        McpHost::All => "all",
    }
}

/// Returns the place where the user pastes the text: a file, or a terminal.
fn destination(host: McpHost) -> &'static str {
    match host {
        McpHost::Claude => "run in a terminal",
        McpHost::Cursor => "~/.cursor/mcp.json",
        McpHost::Vscode => ".vscode/mcp.json",
        McpHost::Codex => "~/.codex/config.toml",
        McpHost::All => "",
    }
}

fn text_to_paste(host: McpHost, url: &str, stdio: bool) -> String {
    let command = own_path();
    let arguments = ["serve", "--stdio"];
    match (host, stdio) {
        (McpHost::Claude, false) => format!("claude mcp add --transport http tokamak {url}"),
        (McpHost::Claude, true) => format!("claude mcp add tokamak -- {command} serve --stdio"),
        (McpHost::Cursor, false) => pretty(json!({"mcpServers": {"tokamak": {"url": url}}})),
        (McpHost::Cursor, true) => pretty(json!({"mcpServers": {"tokamak": {"command": command, "args": arguments}}})),
        (McpHost::Vscode, false) => pretty(json!({"servers": {"tokamak": {"type": "http", "url": url}}})),
        (McpHost::Vscode, true) => {
            pretty(json!({"servers": {"tokamak": {"type": "stdio", "command": command, "args": arguments}}}))
        }
        (McpHost::Codex, false) => format!("[mcp_servers.tokamak]\nurl = {}", json!(url)),
        (McpHost::Codex, true) => {
            format!("[mcp_servers.tokamak]\ncommand = {}\nargs = [\"serve\", \"--stdio\"]", json!(command))
        }
        (McpHost::All, _) => String::new(),
    }
}

/// Returns the absolute path of this binary, because a host may start it without the user's `PATH`.
fn own_path() -> String {
    std::env::current_exe().ok().map_or_else(|| "tokamak".to_owned(), |path| path.display().to_string())
}

fn pretty(value: serde_json::Value) -> String {
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

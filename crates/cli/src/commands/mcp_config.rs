//! `tokamak mcp-config`: prints the command or the settings that connect a host.
//! Invariant: each text can be pasted without changes.

use serde_json::json;

use crate::args::{Host, McpConfigArgs};
use crate::failure::Failure;
use crate::output::Output;

/// The order in which all hosts are printed.
const ALL_HOSTS: [Host; 4] = [Host::Claude, Host::Cursor, Host::Codex, Host::Vscode];

pub fn run(args: &McpConfigArgs, output: &Output) -> Result<(), Failure> {
    let hosts: &[Host] = match args.host {
        Host::All => &ALL_HOSTS,
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

fn block(host: Host, url: &str, stdio: bool) -> String {
    format!("{} · {}\n{}", name(host), destination(host), indented(&text_to_paste(host, url, stdio)))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn name(host: Host) -> &'static str {
    match host {
        Host::Claude => "Claude Code",
        Host::Cursor => "Cursor",
        Host::Vscode => "VS Code",
        Host::Codex => "Codex",
        Host::All => "all",
    }
}

/// Returns the place that the text is for: a file, or a terminal.
fn destination(host: Host) -> &'static str {
    match host {
        Host::Claude => "run in a terminal",
        Host::Cursor => "~/.cursor/mcp.json",
        Host::Vscode => ".vscode/mcp.json",
        Host::Codex => "~/.codex/config.toml",
        Host::All => "",
    }
}

fn text_to_paste(host: Host, url: &str, stdio: bool) -> String {
    let command = own_path();
    let arguments = ["serve", "--stdio"];
    match (host, stdio) {
        (Host::Claude, false) => format!("claude mcp add --transport http tokamak {url}"),
        (Host::Claude, true) => format!("claude mcp add tokamak -- {command} serve --stdio"),
        (Host::Cursor, false) => pretty(json!({"mcpServers": {"tokamak": {"url": url}}})),
        (Host::Cursor, true) => pretty(json!({"mcpServers": {"tokamak": {"command": command, "args": arguments}}})),
        (Host::Vscode, false) => pretty(json!({"servers": {"tokamak": {"type": "http", "url": url}}})),
        (Host::Vscode, true) => {
            pretty(json!({"servers": {"tokamak": {"type": "stdio", "command": command, "args": arguments}}}))
        }
        (Host::Codex, false) => format!("[mcp_servers.tokamak]\nurl = {}", json!(url)),
        (Host::Codex, true) => {
            format!("[mcp_servers.tokamak]\ncommand = {}\nargs = [\"serve\", \"--stdio\"]", json!(command))
        }
        (Host::All, _) => String::new(),
    }
}

/// Returns the path of this binary, so that a host finds it without a search path.
fn own_path() -> String {
    std::env::current_exe().ok().map_or_else(|| "tokamak".to_owned(), |path| path.display().to_string())
}

fn pretty(value: serde_json::Value) -> String {
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

//! `tokamak mcp-config`: what to paste into a host.
//! Invariant: each text is complete as it stands.

use serde_json::json;

use crate::args::{Host, McpConfig};
use crate::failure::Failure;
use crate::output::Output;

pub fn run(args: &McpConfig, output: &Output) -> Result<(), Failure> {
    let hosts: &[Host] = match args.host {
        Host::All => &[Host::Claude, Host::Cursor, Host::Codex, Host::Vscode],
        ref one => std::slice::from_ref(one),
    };
    if output.json {
        let texts: Vec<_> = hosts
            .iter()
            .map(|h| json!({"host": name(*h), "where": place(*h), "paste": paste(*h, &args.url, args.stdio)}))
            .collect();
        output.value(&json!(texts));
        return Ok(());
    }
    let blocks: Vec<String> = hosts.iter().map(|host| block(*host, &args.url, args.stdio)).collect();
    output.line(&blocks.join("\n\n"));
    Ok(())
}

/// For all hosts, as `make run` shows it.
pub fn all(url: &str) -> String {
    let hosts = [Host::Claude, Host::Cursor, Host::Codex, Host::Vscode];
    hosts.map(|host| block(host, url, false)).join("\n\n")
}

fn block(host: Host, url: &str, stdio: bool) -> String {
    format!("{} · {}\n{}", name(host), place(host), indented(&paste(host, url, stdio)))
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

fn place(host: Host) -> &'static str {
    match host {
        Host::Claude => "run in a terminal",
        Host::Cursor => "~/.cursor/mcp.json",
        Host::Vscode => ".vscode/mcp.json",
        Host::Codex => "~/.codex/config.toml",
        Host::All => "",
    }
}

fn paste(host: Host, url: &str, stdio: bool) -> String {
    let command = program();
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

/// This very binary, so that a host finds it without a PATH.
fn program() -> String {
    std::env::current_exe().ok().map_or_else(|| "tokamak".to_owned(), |path| path.display().to_string())
}

fn pretty(value: serde_json::Value) -> String {
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

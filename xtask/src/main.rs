//! Chores of the workspace that are code: `tidy` (the rules of the house), `licences` (what we may ship) and `tokens` (what a
//! model is made to read).
//! Invariant: nothing here changes a file, and no crate of the workspace is used, so a broken crate cannot hide itself.

mod licences;
mod metadata;
mod prose;
mod tidy;
mod tokens;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Chores of the workspace.

Usage: cargo xtask <COMMAND> [--root DIR]

Commands:
  tidy      Check layers, foreign crates, headers, import rings, error types, unsafe, unwrap, names and words.
            Prints each finding as `path:line: [rule] what is wrong; what to do`.
  prose     List sentences of comments and pages to rewrite, as `path:line: what is wrong: sentence`, and count them by crate.
            Paths after the command limit the list: `cargo xtask prose crates/exec docs`.
  licences  Check the licence of every dependency against the `allow` list of deny.toml.
  count     Count the o200k tokens of standard input.
  tokens    Count what a model is made to read (contract, tables, tools, answers) and compare it with tests/tokens.txt.

Options:
  --root DIR   The workspace to check (default: the one this program was built from)
  -h, --help   Print this text

Exit status: 0 nothing found, 1 findings, 2 the check could not run.

Sizes of files, functions and crates are not checked. A clippy lint against unwrap, expect or panic may be allowed with a
`// why: reason` on the same or the preceding line.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match parse(&arguments) {
        Ok(Command::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Command::Count) => tokens::count_input().map(|count| (Vec::new(), count.to_string())),
        Ok(Command::Tidy(root)) => tidy::run(&root).map(|report| {
            report.notes.iter().for_each(|line| println!("{line}"));
            (report.lines(), report.counted)
        }),
        Ok(Command::Prose(root, only)) => prose::run(&root, &only).map(|report| {
            let line = |f: &prose::Finding| format!("{}:{}: {}: {}", f.path, f.line, f.wrong, f.sentence);
            (report.findings.iter().map(line).collect(), report.table().join("\n"))
        }),
        Ok(Command::Licences(root)) => licences::run(&root).map(|report| (report.offenders, report.counted)),
        Ok(Command::Tokens(root)) => tokens::run(&root).map(|report| {
            report.lines.iter().for_each(|line| println!("{line}"));
            (report.findings, report.counted)
        }),
        Err(usage) => Err(usage),
    };
    match done {
        Ok((findings, counted)) => report(&findings, &counted),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[derive(Debug, PartialEq)]
enum Command {
    Help,
    Count,
    Tidy(PathBuf),
    /// The root, and the beginnings of the paths to list.
    Prose(PathBuf, Vec<String>),
    Licences(PathBuf),
    Tokens(PathBuf),
}

fn parse(arguments: &[String]) -> anyhow::Result<Command> {
    if arguments.is_empty() || arguments.iter().any(|a| matches!(a.as_str(), "-h" | "--help" | "help")) {
        return Ok(Command::Help);
    }
    let mut root = None;
    let mut command = None;
    let mut paths = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--root" => match rest.next() {
                Some(dir) => root = Some(PathBuf::from(dir)),
                None => anyhow::bail!("--root needs a folder; write `--root DIR`"),
            },
            "tidy" | "prose" | "licences" | "tokens" | "count" if command.is_none() => {
                command = Some(argument.as_str())
            }
            path if command == Some("prose") && !path.starts_with('-') => paths.push(path.to_owned()),
            other => anyhow::bail!("`{other}` is not understood; `cargo xtask --help` lists what is"),
        }
    }
    let root = root.unwrap_or_else(home);
    match command {
        Some("count") => Ok(Command::Count),
        Some("tidy") => Ok(Command::Tidy(root)),
        Some("prose") => Ok(Command::Prose(root, paths)),
        Some("tokens") => Ok(Command::Tokens(root)),
        Some(_) => Ok(Command::Licences(root)),
        None => anyhow::bail!("no command; `cargo xtask --help` lists them"),
    }
}

/// The workspace this program was built from.
fn home() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

fn report(findings: &[String], counted: &str) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("{counted}");
        return ExitCode::SUCCESS;
    }
    eprintln!("{counted}");
    ExitCode::from(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Command> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(parsed("").unwrap(), Command::Help);
        assert_eq!(parsed("tidy --help").unwrap(), Command::Help);
        assert_eq!(parsed("tidy").unwrap(), Command::Tidy(home()));
        assert_eq!(parsed("tidy --root /x").unwrap(), Command::Tidy("/x".into()));
        assert_eq!(parsed("prose a b").unwrap(), Command::Prose(home(), vec!["a".into(), "b".into()]));
        assert_eq!(parsed("tokens").unwrap(), Command::Tokens(home()));
        assert_eq!(parsed("--root /x licences").unwrap(), Command::Licences("/x".into()));
    }

    #[test]
    fn mistakes_are_refused() {
        for line in ["tidi", "tidy --root", "tidy licences", "--root /x", "tidy --fix"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}

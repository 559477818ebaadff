//! The commands of `cargo xtask`: checks of the workspace's rules, measurements, and pages that are written from the source.
//! Invariant: this program uses no crate of the workspace, so that a crate with a mistake can be checked. Only `map` writes a file.

// why: this program prints its result.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod commits;
mod licences;
mod map;
mod measure;
mod metadata;
mod prose;
mod recipes;
mod source;
mod tidy;
mod tokens;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Chores of the workspace.

Usage: cargo xtask <COMMAND> [--root DIR]

Commands:
  tidy      Check layers, foreign crates, headers, import rings, error types, lints, names, words, prose, map and recipes.
            Prints each finding as `path:line: [rule] what is wrong; what to do`.
            Rules that do not fail yet are counted; `--reported` lists their findings too.
  prose     List sentences of comments and pages to rewrite, as `path:line: what is wrong: sentence`, and count them by crate.
            Paths after the command limit the list: `cargo xtask prose crates/exec docs`.
  map       Write docs/map.md from the headers of the files.
  measure   Print sizes, shared type names, and the hops of the walks in xtask/walks. `--before REV` adds an earlier revision.
  commits   Check the subjects of the commits in origin/main..HEAD. `--message FILE` checks the message of one commit.
  licences  Check the licence of every dependency against the `allow` list of deny.toml.
  tokens    Count the o200k tokens of every text that a model reads, and compare them with tests/tokens.txt.
  count     Count the o200k tokens of standard input.

Options:
  --root DIR   The workspace to check (default: the one this program was built from)
  -h, --help   Print this text

Exit status: 0 without findings, 1 with findings, 2 if the check could not run.

Sizes of files, functions and crates are measured, not checked.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = parse(&arguments).and_then(run);
    match result {
        Ok(output) => print(&output),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The output of a command.
#[derive(Default)]
struct Output {
    /// The lines that are printed first. They do not change the exit status.
    lines: Vec<String>,
    /// The findings, which are printed next. With any finding the exit status is 1.
    findings: Vec<String>,
    /// The last printed line.
    summary: String,
}

#[derive(Debug, PartialEq)]
enum Command {
    Help,
    Count,
    Tidy {
        root: PathBuf,
        reported: bool,
    },
    Prose {
        root: PathBuf,
        /// The paths to check, or the first characters of paths. An empty list means all paths.
        paths: Vec<String>,
    },
    Map {
        root: PathBuf,
    },
    Measure {
        root: PathBuf,
        before: Option<String>,
    },
    Commits {
        root: PathBuf,
        message: Option<PathBuf>,
    },
    Licences {
        root: PathBuf,
    },
    Tokens {
        root: PathBuf,
    },
}

const COMMANDS: &[&str] = &["tidy", "prose", "map", "measure", "commits", "licences", "tokens", "count"];

fn parse(arguments: &[String]) -> anyhow::Result<Command> {
    if arguments.is_empty() || arguments.iter().any(|a| matches!(a.as_str(), "-h" | "--help" | "help")) {
        return Ok(Command::Help);
    }
    let mut command = None;
    let mut root = workspace_root();
    let mut reported = false;
    let mut before = None;
    let mut message = None;
    let mut paths = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| anyhow::anyhow!("{argument} needs a value after it"));
        match (command, argument.as_str()) {
            (_, "--root") => root = PathBuf::from(value()?),
            (Some("tidy"), "--reported") => reported = true,
            (Some("measure"), "--before") => before = Some(value()?.clone()),
            (Some("commits"), "--message") => message = Some(PathBuf::from(value()?)),
            (Some("prose"), path) if !path.starts_with('-') => paths.push(path.to_owned()),
            (None, name) if COMMANDS.contains(&name) => command = Some(name),
            (_, other) => anyhow::bail!("`{other}` is not understood here; `cargo xtask --help` lists the commands"),
        }
    }
    Ok(match command {
        Some("tidy") => Command::Tidy { root, reported },
        Some("prose") => Command::Prose { root, paths },
        Some("map") => Command::Map { root },
        Some("measure") => Command::Measure { root, before },
        Some("commits") => Command::Commits { root, message },
        Some("licences") => Command::Licences { root },
        Some("tokens") => Command::Tokens { root },
        Some(_) => Command::Count,
        None => anyhow::bail!("no command; `cargo xtask --help` lists them"),
    })
}

/// Returns the root of the workspace from which this program was built.
fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

fn run(command: Command) -> anyhow::Result<Output> {
    match command {
        Command::Help => Ok(Output { summary: HELP.trim_end().to_owned(), ..Output::default() }),
        Command::Count => Ok(Output { summary: tokens::count_input()?.to_string(), ..Output::default() }),
        Command::Tidy { root, reported } => {
            let report = tidy::run(&root)?;
            let mut lines = report.notes;
            if reported {
                lines.extend(report.reported.iter().map(tidy::Finding::to_string));
            }
            let findings = report.findings.iter().map(tidy::Finding::to_string).collect();
            Ok(Output { lines, findings, summary: report.summary })
        }
        Command::Prose { root, paths } => {
            let report = prose::run(&root, &paths)?;
            let findings = report.findings.iter().map(prose::Finding::to_string).collect();
            Ok(Output { lines: Vec::new(), findings, summary: report.table().join("\n") })
        }
        Command::Map { root } => Ok(Output { summary: map::write(&root)?, ..Output::default() }),
        Command::Measure { root, before } => {
            let report = measure::run(&root, before.as_deref())?;
            Ok(Output { lines: report.lines, findings: report.findings, summary: report.summary })
        }
        Command::Commits { root, message } => {
            let report = match message {
                Some(file) => commits::check_message(&file)?,
                None => commits::check_unpublished(&root)?,
            };
            Ok(Output { lines: Vec::new(), findings: report.findings, summary: report.summary })
        }
        Command::Licences { root } => {
            let report = licences::run(&root)?;
            Ok(Output { lines: Vec::new(), findings: report.offenders, summary: report.summary })
        }
        Command::Tokens { root } => {
            let report = tokens::run(&root)?;
            Ok(Output { lines: report.lines, findings: report.findings, summary: report.summary })
        }
    }
}

fn print(output: &Output) -> ExitCode {
    output.lines.iter().chain(&output.findings).for_each(|line| println!("{line}"));
    if output.findings.is_empty() {
        println!("{}", output.summary);
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", output.summary);
    ExitCode::from(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Command> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_are_parsed() {
        let root = workspace_root();
        assert_eq!(parsed("").unwrap(), Command::Help);
        assert_eq!(parsed("tidy --help").unwrap(), Command::Help);
        assert_eq!(parsed("tidy").unwrap(), Command::Tidy { root: root.clone(), reported: false });
        assert_eq!(parsed("tidy --root /x --reported").unwrap(), Command::Tidy { root: "/x".into(), reported: true });
        let paths = vec!["a".into(), "b".into()];
        assert_eq!(parsed("prose a b").unwrap(), Command::Prose { root: root.clone(), paths });
        let before = Some("HEAD~1".into());
        assert_eq!(parsed("measure --before HEAD~1").unwrap(), Command::Measure { root: root.clone(), before });
        let message = Some("x".into());
        assert_eq!(parsed("commits --message x").unwrap(), Command::Commits { root: root.clone(), message });
        assert_eq!(parsed("tokens").unwrap(), Command::Tokens { root });
        assert_eq!(parsed("--root /x licences").unwrap(), Command::Licences { root: "/x".into() });
    }

    #[test]
    fn mistakes_are_refused() {
        for line in ["tidi", "tidy --root", "tidy licences", "--root /x", "tidy --fix", "map --before x", "prose --x"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}

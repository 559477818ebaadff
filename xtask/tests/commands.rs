//! Tests of the program `xtask`: each test runs it on a small workspace, and checks the exit status and the output.

// why: in a test and its helper functions, a panic is the way to fail.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the names of the crates in the layer table.
fn crates() -> Vec<&'static str> {
    let rows = include_str!("../src/tidy/layers.rs").lines().filter(|line| line.contains("\", Layer::"));
    rows.filter_map(|row| row.split('"').nth(1)).collect()
}

/// A temporary workspace that has every crate of the layer table and no mistake.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Workspace {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&root);
        let workspace = Workspace(root);
        workspace.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n[workspace.lints.rust]\n[workspace.lints.clippy]\n");
        for name in crates() {
            workspace.write(&format!("crates/{name}/Cargo.toml"), &manifest(name, ""));
            workspace.write(&format!("crates/{name}/src/lib.rs"), "//! Does a job.\n//! Invariants: none.\n");
        }
        workspace
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs a command on this workspace, and returns the exit status, stdout and stderr.
    fn run(&self, command: &str) -> (i32, String, String) {
        xtask(&[command, "--root", self.0.to_str().unwrap()])
    }
}

fn manifest(name: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lints]\nworkspace = true\n{dependencies}"
    )
}

fn xtask(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_tidy_workspace_is_counted_in_one_line() {
    let workspace = Workspace::new("tidy");
    workspace.write("crates/base/target/skipped.rs", "not rust");
    workspace.write("crates/base/src/logo.png", "");
    std::fs::write(workspace.0.join("crates/base/src/logo.png"), [0xff, 0xfe]).unwrap();
    let count = crates().len();
    let expected = format!("tidy: {count} packages, {count} Rust files, {} lines, nothing found\n", 2 * count);
    let (status, output, error) = workspace.run("tidy");
    assert!(output.ends_with(&expected), "{output}");
    assert_eq!((status, error.as_str()), (0, ""));
}

#[test]
fn the_findings_of_each_rule_are_printed() {
    let workspace = Workspace::new("untidy");
    workspace.write("ARCHITECTURE.md", "no tree\n");
    workspace.write("crates/base/Cargo.toml", &manifest("base", "[dependencies]\nlang = { path = \"../lang\" }\n"));
    workspace.write("crates/lang/Cargo.toml", &manifest("lang", "[dependencies]\nclap = \"4\"\n"));
    workspace.write("crates/exec/Cargo.toml", "[package]\nname = \"exec\"\nversion = \"0.1.0\"\n");
    workspace.write("crates/lang/src/a.rs", "use crate::b::B;\nfn f() -> Result<u8, String> {\n    g()\n}\n");
    workspace.write("crates/lang/src/b.rs", "//! B.\nuse crate::a::A;\n// TODO\nfn f() {}\n");
    workspace.write("crates/lang/src/util.rs", "//! U.\n");
    workspace.write("crates/lang/src/c.rs", "//! C.\nfn f( {}\n");
    let (status, findings, summary) = workspace.run("tidy");
    for expected in [
        "ARCHITECTURE.md:1: [layers] ",
        "crates/base/Cargo.toml:8: [layers] `base` names `lang`",
        "crates/exec/Cargo.toml:1: [lints] ",
        "crates/lang/Cargo.toml:8: [foreign] `lang` depends on `clap`",
        "crates/lang/src/a.rs:1: [headers] ",
        "crates/lang/src/a.rs:1: [rings] ",
        "crates/lang/src/a.rs:2: [errors] ",
        "crates/lang/src/b.rs:3: [words] ",
        "crates/lang/src/c.rs:2: [parse] ",
        "crates/lang/src/util.rs:1: [names] ",
    ] {
        assert!(findings.lines().any(|line| line.starts_with(expected)), "{expected}\nis not in\n{findings}");
    }
    assert_eq!(findings.lines().filter(|line| line.contains(": [")).count(), 10, "{findings}");
    let count = crates().len();
    let (files, lines) = (count + 4, 2 * count + 11);
    let expected = format!("tidy: {count} packages, {files} Rust files, {lines} lines, 10 findings\n");
    assert_eq!((status, summary.as_str()), (1, expected.as_str()));
}

#[test]
fn a_workspace_without_dependencies_passes_the_check_of_licences() {
    let workspace = Workspace::new("licences");
    let (status, _, error) = workspace.run("licences");
    assert_eq!(status, 2, "no deny.toml: {error}");
    workspace.write("deny.toml", "[licenses]\nallow = [\"MIT\"]\n");
    let package = |name| format!("[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\n");
    let packages: Vec<String> = crates().into_iter().map(package).collect();
    workspace.write("Cargo.lock", &format!("version = 4\n\n{}", packages.join("\n")));
    let (status, output, error) = workspace.run("licences");
    assert_eq!((status, error.as_str()), (0, ""));
    assert_eq!(output, "licences: 0 dependencies, each under one of the 1 licences deny.toml allows\n");
}

#[test]
fn a_command_that_cannot_run_fails_with_status_2() {
    assert_eq!(xtask(&["tidy", "--root", "/nowhere/at/all"]).0, 2);
    assert_eq!(xtask(&["sweep"]).0, 2);
    let (status, help, _) = xtask(&["--help"]);
    assert!(status == 0 && help.contains("Usage: cargo xtask"));
}

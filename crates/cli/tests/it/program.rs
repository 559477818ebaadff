//! Runs the binary `tokamak` for the tests.
//! Invariant: the binary does not see the settings of the developer, and it ends before the test ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The output and the exit code of a command that has ended.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Returns standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }

    /// Returns the error that `--json` prints on the last line of standard error.
    pub fn error(&self) -> Value {
        serde_json::from_str(self.err.trim_end().lines().last().unwrap())
            .unwrap_or_else(|e| panic!("{e}: {}", self.err))
    }
}

/// Returns a command that runs the binary without the settings of the developer.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokamak"));
    for name in ["TOKAMAK_CONFIG", "TOKAMAK_DATA", "RUST_LOG", "HOME"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary with empty standard input, and waits until it ends.
pub fn tokamak(arguments: &[&str]) -> Ended {
    ended(command().args(arguments).output().unwrap())
}

/// Runs the binary with these bytes as standard input, and waits until it ends.
pub fn tokamak_with(arguments: &[&str], stdin: &[u8]) -> Ended {
    let mut child = command().args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    ended(child.wait_with_output().unwrap())
}

fn ended(output: std::process::Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn demo_yaml() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogs/demo.yaml")
}

/// Returns the demo catalog with another id, and with the first occurrence of each text replaced.
pub fn changed(id: &str, changes: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(demo_yaml()).unwrap().replace("catalog: demo", &format!("catalog: {id}"));
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// Writes a file and returns its path.
pub fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

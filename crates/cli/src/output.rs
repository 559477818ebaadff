//! Prints to standard output and standard error, as text or as JSON.
//! Invariant: a closed pipe ends the output, not the program. Colours are written only to a terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::failure::Failure;

pub struct Output {
    /// Whether the command prints JSON, because `--json` was given.
    pub json: bool,
}

/// Prints the reason why a command line cannot be parsed, as JSON if `--json` is in it. Help and version arrive here too, and
/// are not errors.
pub fn usage(error: &clap::Error) -> ExitCode {
    // The arguments could not be parsed, so the flag is looked for in the raw ones.
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        Output::new(true).notice(&json!({"error": {"code": "usage", "message": error.to_string().trim()}}).to_string());
    } else {
        // A failure to write means that the reader has closed the pipe, and there is nowhere to report it.
        let _ = error.print();
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a line to standard output.
    pub fn line(&self, text: &str) {
        // A failure to write means that the reader has closed the pipe, and there is nowhere to report it.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    /// Prints a JSON value to standard output.
    pub fn value(&self, value: &Value) {
        self.line(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Prints the result of a command: the value with `--json`, the line otherwise.
    pub fn value_or_line(&self, value: &Value, text: &str) {
        if self.json { self.value(value) } else { self.line(text) }
    }

    /// Prints a line to standard error.
    pub fn notice(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Returns whether standard output is a terminal.
    pub fn terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    /// Returns whether colours may be written to standard output.
    pub fn colour(&self) -> bool {
        self.terminal() && std::env::var_os("NO_COLOR").is_none()
    }

    pub fn bold(&self, text: &str) -> String {
        if self.colour() { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Prints a failure with the causes that its text does not contain, and returns its exit code.
    pub fn fail(&self, failure: &Failure) -> ExitCode {
        let mut text = failure.to_string();
        let mut source = std::error::Error::source(failure);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text.push_str(&format!("\n  because: {cause_text}"));
            }
            source = cause.source();
        }
        if self.json {
            self.notice(&json!({"error": {"code": failure.code(), "message": text}}).to_string());
        } else {
            self.notice(&format!("error: {text}"));
        }
        failure.exit_code()
    }
}

//! Prints to standard output and standard error, as text or as JSON.
//! Invariant: if the reader closes the pipe, the command continues without output. Colours are written only to a terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::failure::Failure;

pub struct Output {
    /// Whether the command prints JSON, because `--json` was given.
    pub json: bool,
}

/// Prints the error of a command line that cannot be parsed, as JSON if the command line has `--json`. clap also reports `--help` and
/// `--version` as an "error", which is printed with the exit code 0.
pub fn print_usage_error(error: &clap::Error) -> ExitCode {
    // No parsed arguments exist at this point, so `--json` is looked for in the raw arguments.
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        Output::new(true).notice(&json!({"error": {"code": "usage", "message": error.to_string().trim()}}).to_string());
    } else {
        // Printing fails only if the reader has closed the pipe. The failure is ignored, because nobody would read a report of it.
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
        // Printing fails only if the reader has closed the pipe. The failure is ignored, because nobody would read a report of it.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    /// Prints a JSON value to standard output.
    pub fn value(&self, value: &Value) {
        self.line(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Prints the result of a command: `value` with `--json`, and `text` without it.
    pub fn value_or_line(&self, value: &Value, text: &str) {
        if self.json { self.value(value) } else { self.line(text) }
    }

    /// Prints a line to standard error, which is for messages that are not the result of the command.
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

    /// Prints a failure to standard error, and returns its exit code. A cause in the chain of errors is added if the message does not
    /// contain its text.
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

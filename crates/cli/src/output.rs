//! Standard output and standard error.
//! Invariant: a closed pipe ends the output, not the program; colour only on a terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::failure::Failure;

pub struct Output {
    pub json: bool,
}

/// A command line that cannot be read: as clap says it, or as JSON where that was asked for. Help and version are no errors.
pub fn usage(refusal: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if refusal.use_stderr() && wants_json {
        Output::new(true)
            .notice(&json!({"error": {"code": "usage", "message": refusal.to_string().trim()}}).to_string());
    } else {
        // Nobody reads any more: there is nobody to tell.
        let _ = refusal.print();
    }
    ExitCode::from(if refusal.use_stderr() { 2 } else { 0 })
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// To standard output, with a newline.
    pub fn line(&self, text: &str) {
        // Nobody reads any more: there is nobody to tell.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    pub fn value(&self, value: &Value) {
        self.line(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// To standard error, with a newline.
    pub fn notice(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Whether a person reads standard output.
    pub fn terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    pub fn colour(&self) -> bool {
        self.terminal() && std::env::var_os("NO_COLOR").is_none()
    }

    pub fn bold(&self, text: &str) -> String {
        if self.colour() { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

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

//! Shows the progress of a test on standard error: as a bar on a terminal, otherwise as one line for each capability.
//! Invariant: progress is never printed to standard output, and not at all with `--json`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

use crate::output::Output;

/// The progress of a test on standard error.
pub struct Progress<'a> {
    output: &'a Output,
    /// The progress bar. `None` if standard error is not a terminal.
    bar: Option<ProgressBar>,
    all: usize,
    /// The number of capabilities whose test has begun.
    begun: usize,
}

impl<'a> Progress<'a> {
    pub fn new(output: &'a Output, all: usize) -> Self {
        let bar = (std::io::stderr().is_terminal() && !output.json).then(|| {
            let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { output, bar, all, begun: 0 }
    }

    /// Shows that the test of a capability begins.
    pub fn begin(&mut self, capability: &str) {
        self.begun += 1;
        match &self.bar {
            Some(bar) => bar.set_message(capability.to_owned()),
            None if !self.output.json => self.output.notice(&format!("{}/{} {capability}", self.begun, self.all)),
            None => {}
        }
    }

    /// Shows that the test of a capability has ended.
    pub fn end_one(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Removes the progress bar.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

//! Shows the progress of a test on standard error: a bar on a terminal, a line for each capability elsewhere.
//! Invariant: standard output has only the report. With `--json` no progress is shown.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

use crate::output::Output;

pub struct Progress<'a> {
    output: &'a Output,
    /// The bar on a terminal.
    bar: Option<ProgressBar>,
    all: usize,
    /// The number of capabilities that were begun.
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

    /// Shows that a capability begins.
    pub fn begin(&mut self, capability: &str) {
        self.begun += 1;
        match &self.bar {
            Some(bar) => bar.set_message(capability.to_owned()),
            None if !self.output.json => self.output.notice(&format!("{}/{} {capability}", self.begun, self.all)),
            None => {}
        }
    }

    /// Shows that a capability has ended.
    pub fn end_one(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Removes the bar.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

//! How far a test is, on standard error: a bar at a terminal, a line for each capability elsewhere.
//! Invariant: standard output is the report's alone; with `--json` nothing is said on the way.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

use crate::output::Output;

pub struct Progress<'a> {
    output: &'a Output,
    bar: Option<ProgressBar>,
    all: usize,
    done: usize,
}

impl<'a> Progress<'a> {
    pub fn new(output: &'a Output, all: usize) -> Self {
        let bar = (std::io::stderr().is_terminal() && !output.json).then(|| {
            let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { output, bar, all, done: 0 }
    }

    /// The next one begins.
    pub fn begin(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if !self.output.json => self.output.notice(&format!("{}/{} {what}", self.done, self.all)),
            None => {}
        }
    }

    pub fn end_one(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

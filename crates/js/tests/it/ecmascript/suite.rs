//! Runs the cases of a conformance suite in three ways on all processors, and compares the results with each other and
//! with the known failures.

use std::collections::HashSet;
use std::env;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::case_runner::{Case, CaseRunner, HarnessFiles, Verdict};
use super::known_failures::KnownFailures;
use super::native::Native;

/// The name of a case that takes longer than this is printed.
const SLOW: Duration = Duration::from_secs(5);

/// The verdicts about one case, one for each way of running it.
struct CaseResult {
    /// The verdict of a run in the guest without interruption.
    uninterrupted: Verdict,
    /// The verdict of a run in the guest whose heap is stored and loaded after every job.
    stored: Verdict,
    /// The verdict of the native build, if it exists.
    native: Option<Verdict>,
}

pub struct Suite<'a> {
    pub title: &'a str,
    pub harness_files: HarnessFiles,
    pub known_failures: &'a KnownFailures,
    /// Runs a case in the native build.
    pub run_natively: &'a (dyn Fn(&Native, usize, &Case) -> Verdict + Sync),
    /// Whether the cases are all files of the suite. Only then a known failure without a file is reported.
    pub is_complete: bool,
}

impl Suite<'_> {
    /// Fails if a difference is not in the list of known failures, or if a known failure does not happen.
    pub fn check(&self, cases: &[Case]) {
        let results = self.run_all(cases);
        let mut problems = String::new();
        let mut uninterrupted = 0;
        let mut stored = 0;
        let mut native = 0;
        let mut has_native = false;
        for (case, result) in cases.iter().zip(&results) {
            uninterrupted += usize::from(result.uninterrupted.is_ok());
            stored += usize::from(result.stored.is_ok());
            has_native |= result.native.is_some();
            native += usize::from(matches!(result.native, Some(Ok(()))));
            if let Some(problem) = self.problem(case, result) {
                writeln!(problems, "{}: {problem}", case.name).unwrap();
            }
        }
        if self.is_complete && env::var_os("ECMASCRIPT_ONLY").is_none() {
            let names: HashSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
            for name in self.known_failures.names().filter(|name| !names.contains(name)) {
                writeln!(problems, "{name}: is listed, but there is no such file").unwrap();
            }
        }
        let total = cases.len();
        let native = if has_native { format!(", {native} natively") } else { String::new() };
        println!(
            "{}: {total} files, {uninterrupted} pass without interruption, {stored} stored after every job{native}",
            self.title
        );
        assert!(problems.is_empty(), "{problems}");
        assert!(uninterrupted > 0, "no file passed");
    }

    fn problem(&self, case: &Case, result: &CaseResult) -> Option<String> {
        let CaseResult { uninterrupted, stored, native } = result;
        if uninterrupted.is_ok() != stored.is_ok() {
            return Some(format!("without interruption {uninterrupted:?}, stored after every job {stored:?}"));
        }
        let fails_natively = native.as_ref().is_some_and(Result::is_err);
        if self.known_failures.is_covered(&case.name, uninterrupted.is_err(), fails_natively) {
            return None;
        }
        let listed = self.known_failures.entry(&case.name);
        let reason = listed.map_or("it is not listed", |entry| &entry.reason);
        if uninterrupted.is_err() != listed.is_some_and(|entry| entry.guest) {
            return Some(format!("{uninterrupted:?} (natively {native:?}): {reason}"));
        }
        match native {
            Some(native) if native.is_err() != listed.is_some_and(|entry| entry.native) => {
                Some(format!("{uninterrupted:?}, but natively {native:?}: {reason}"))
            }
            _ => None,
        }
    }

    /// Runs all cases and returns their results in the same order.
    fn run_all(&self, cases: &[Case]) -> Vec<CaseResult> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(2, Into::into) {
                scope.spawn(|| {
                    let uninterrupted = CaseRunner::new(false, self.harness_files.clone());
                    let stored = CaseRunner::new(true, self.harness_files.clone());
                    let native = Native::find(self.harness_files.clone());
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(index) else { break };
                        let started = Instant::now();
                        let result = CaseResult {
                            uninterrupted: uninterrupted.run(case),
                            stored: stored.run(case),
                            native: native.as_ref().map(|native| (self.run_natively)(native, index, case)),
                        };
                        if started.elapsed() > SLOW {
                            println!("{}: {:.1} s", case.name, started.elapsed().as_secs_f64());
                        }
                        results.lock().unwrap().push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// Returns whether a file is run. If the variable `ECMASCRIPT_ONLY` is set, only files whose name contains its value
/// are run.
pub fn is_chosen(name: &str) -> bool {
    env::var("ECMASCRIPT_ONLY").map_or(true, |part| name.contains(&part))
}

//! Runs cases in three ways, side by side on all cores, and holds the ways against each other.

use std::collections::HashSet;
use std::env;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::desk::{Case, Desk, Library, Verdict};
use super::expected::Expected;
use super::native::Native;

/// A case that takes longer is named.
const SLOW: Duration = Duration::from_secs(5);

/// What came of one case: straight through, stored at every turn, and in the native build if there is one.
struct Result3 {
    straight: Verdict,
    stored: Verdict,
    native: Option<Verdict>,
}

pub struct Suite<'a> {
    pub title: &'a str,
    pub library: Library,
    pub expected: &'a Expected,
    /// How the native build runs a case.
    pub natively: &'a (dyn Fn(&Native, usize, &Case) -> Verdict + Sync),
    /// Every file that there is, so that the list can be held against them.
    pub all: bool,
}

impl Suite<'_> {
    /// Every difference that the list does not explain, and every entry that explains nothing, is a failure.
    pub fn hold(&self, cases: &[Case]) {
        let results = self.each(cases);
        let mut wrong = String::new();
        let (mut straight, mut stored, mut natively, mut native) = (0, 0, 0, false);
        for (case, result) in cases.iter().zip(&results) {
            straight += usize::from(result.straight.is_ok());
            stored += usize::from(result.stored.is_ok());
            native |= result.native.is_some();
            natively += usize::from(matches!(result.native, Some(Ok(()))));
            if let Some(what) = self.wrong(case, result) {
                writeln!(wrong, "{}: {what}", case.name).unwrap();
            }
        }
        if self.all && env::var_os("ECMASCRIPT_ONLY").is_none() {
            let known: HashSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
            for name in self.expected.names().filter(|name| !known.contains(name)) {
                writeln!(wrong, "{name}: is listed, and there is no such file").unwrap();
            }
        }
        let of = cases.len();
        let beside = if native { format!(", natively {natively}") } else { String::new() };
        println!("{}: {of} files, {straight} pass straight through, {stored} stored at every turn{beside}", self.title);
        assert!(wrong.is_empty(), "{}", wrong);
        assert!(straight > 0, "nothing was run");
    }

    fn wrong(&self, case: &Case, result: &Result3) -> Option<String> {
        let Result3 { straight, stored, native } = result;
        if straight.is_ok() != stored.is_ok() {
            return Some(format!("straight through {straight:?}, stored at every turn {stored:?}"));
        }
        let natively = native.as_ref().is_some_and(Result::is_err);
        if self.expected.may(&case.name, straight.is_err(), natively) {
            return None;
        }
        let listed = self.expected.entry(&case.name);
        let why = listed.map_or("it is not listed", |entry| &entry.why);
        if straight.is_err() != listed.is_some_and(|entry| entry.guest) {
            return Some(format!("{straight:?} (natively {native:?}): {why}"));
        }
        match native {
            Some(native) if native.is_err() != listed.is_some_and(|entry| entry.native) => {
                Some(format!("{straight:?}, but natively {native:?}: {why}"))
            }
            _ => None,
        }
    }

    fn each(&self, cases: &[Case]) -> Vec<Result3> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(2, Into::into) {
                scope.spawn(|| {
                    let straight = Desk::new(false, self.library.clone());
                    let stored = Desk::new(true, self.library.clone());
                    let native = Native::find(self.library.clone());
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(at) else { break };
                        let started = Instant::now();
                        let result = Result3 {
                            straight: straight.run(case),
                            stored: stored.run(case),
                            native: native.as_ref().map(|native| (self.natively)(native, at, case)),
                        };
                        if started.elapsed() > SLOW {
                            println!("{}: {:.1} s", case.name, started.elapsed().as_secs_f64());
                        }
                        done.lock().unwrap().push((at, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap();
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// `ECMASCRIPT_ONLY` names a part of the files to run.
pub fn chosen(name: &str) -> bool {
    env::var("ECMASCRIPT_ONLY").map_or(true, |part| name.contains(&part))
}

//! The rules in force, and how often each key has been served its fault.
//! Invariants: a request's own header comes before any rule; of the rules, the first that matches and has not healed applies,
//! and only one; counting and deciding are one step under one lock, so `times=n` means n also for requests at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::rate::{Turn, Window};
use super::{Fault, FaultError, Kind};

#[derive(Default)]
pub struct Board(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    rules: Vec<Rule>,
    served: BTreeMap<String, u64>,
    windows: BTreeMap<String, Window>,
}

/// A fault for every request that matches.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As it was given.
    pub text: String,
    pub fault: Fault,
    pub method: Option<String>,
    /// A whole path, or the beginning of one when it ends with `*`.
    pub path: String,
    /// How many requests it has been applied to.
    pub hits: u64,
}

/// What a request looks like to the rules.
pub struct Incoming<'r> {
    pub method: &'r str,
    pub path: &'r str,
    /// The fault header, if it came with one.
    pub header: Option<&'r str>,
}

/// A fault that applies to one request.
pub struct Active {
    pub fault: Fault,
    /// How the request stands with the limit, if the fault is one.
    pub turn: Option<Turn>,
}

impl Board {
    pub fn pick(&self, incoming: &Incoming<'_>) -> Result<Option<Active>, FaultError> {
        let mut kept = self.lock();
        if let Some(text) = incoming.header {
            let fault: Fault = text.parse()?;
            let default =
                format!("{} {} {}", incoming.method, incoming.path, text.split(['=', ';']).next().unwrap_or_default());
            return Ok(kept.apply(fault, &default));
        }
        for at in 0..kept.rules.len() {
            let rule = &kept.rules[at];
            if !rule.matches(incoming) {
                continue;
            }
            let (fault, default) = (rule.fault.clone(), format!("rule {at}"));
            if let Some(active) = kept.apply(fault, &default) {
                kept.rules[at].hits += 1;
                return Ok(Some(active));
            }
        }
        Ok(None)
    }

    /// These rules instead of all earlier ones; what has healed breaks again.
    pub fn set(&self, rules: Vec<Rule>) {
        *self.lock() = Kept { rules, ..Kept::default() };
    }

    pub fn rules(&self) -> Vec<Rule> {
        self.lock().rules.clone()
    }

    pub fn clear(&self) {
        self.set(Vec::new());
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn matches(&self, incoming: &Incoming<'_>) -> bool {
        let path = match self.path.strip_suffix('*') {
            Some(beginning) => incoming.path.starts_with(beginning),
            None => incoming.path == self.path,
        };
        path && self.method.as_ref().is_none_or(|method| method == incoming.method)
    }
}

impl Kept {
    /// Nothing when the fault has healed for its key.
    fn apply(&mut self, fault: Fault, default: &str) -> Option<Active> {
        let key = fault.key.clone().unwrap_or_else(|| default.to_owned());
        if let Some(times) = fault.times {
            let served = self.served.entry(key.clone()).or_default();
            if *served >= times {
                return None;
            }
            *served += 1;
        }
        let turn = match fault.kind {
            Kind::Rate(limit) => Some(self.windows.entry(key).or_default().take(limit, Instant::now())),
            _ => None,
        };
        Some(Active { fault, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str, method: Option<&str>, path: &str) -> Rule {
        let method = method.map(str::to_owned);
        Rule { text: text.to_owned(), fault: text.parse().unwrap(), method, path: path.to_owned(), hits: 0 }
    }

    fn kind(board: &Board, method: &str, path: &str, header: Option<&str>) -> Option<Kind> {
        board.pick(&Incoming { method, path, header }).unwrap().map(|active| active.fault.kind)
    }

    #[test]
    fn a_fault_heals_per_key() {
        let board = Board::default();
        for (header, broken) in [
            ("close;times=2;key=a", true),
            ("close;times=2;key=a", true),
            ("close;times=2;key=a", false),
            ("close;times=2;key=b", true),
            ("close;times=0;key=c", false),
            ("close", true),
        ] {
            assert_eq!(kind(&board, "GET", "/x", Some(header)).is_some(), broken, "{header}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_and_has_not_healed_applies() {
        let board = Board::default();
        board.set(vec![rule("close;times=1", Some("POST"), "/a"), rule("not-json", None, "/a*")]);
        assert_eq!(kind(&board, "GET", "/b", None), None);
        assert_eq!(kind(&board, "GET", "/a", None), Some(Kind::NotJson));
        assert_eq!(kind(&board, "POST", "/a", None), Some(Kind::Close));
        assert_eq!(kind(&board, "POST", "/a", None), Some(Kind::NotJson));
        assert_eq!(kind(&board, "POST", "/abc", Some("truncate")), Some(Kind::Truncate(64)));
        assert_eq!(board.rules().iter().map(|rule| rule.hits).collect::<Vec<_>>(), [1, 2]);
        board.clear();
        assert_eq!(kind(&board, "POST", "/a", None), None);
    }
}

//! The active fault rules, and the number of requests that got the fault of each key.
//! Invariants: a fault in the header of a request overrides all rules. Of the rules, only the first that matches and has `times` left
//! applies. The count and the decision are made under one lock, so `times=n` is exact even for concurrent requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::rate::{RateDecision, RateWindow};
use super::{Fault, FaultError, FaultKind};

#[derive(Default)]
pub struct FaultRules(Mutex<RulesState>);

#[derive(Default)]
struct RulesState {
    rules: Vec<FaultRule>,
    /// The number of requests that got a fault with `times`, by the key of the fault.
    served: BTreeMap<String, u64>,
    /// The current window of each rate limit, by the key of its fault.
    windows: BTreeMap<String, RateWindow>,
}

/// A rule that applies a fault to every request that it matches.
#[derive(Debug, Clone)]
pub struct FaultRule {
    /// The text of the fault, which `/control/faults` shows.
    pub text: String,
    pub fault: Fault,
    /// The method that the rule matches. `None` matches any method.
    pub method: Option<String>,
    /// The path that the rule matches. If the text ends with `*`, the rule matches every path with this beginning.
    pub path: String,
    /// The number of requests that got the fault of this rule.
    pub hits: u64,
}

/// The parts of a request that decide about its fault.
pub struct RequestLine<'r> {
    pub method: &'r str,
    pub path: &'r str,
    /// The value of the fault header, if the request has one.
    pub fault_header: Option<&'r str>,
}

/// A fault that applies to one request.
pub struct ActiveFault {
    pub fault: Fault,
    /// The decision of the rate limit. Only a fault of the kind `rate` has one.
    pub rate: Option<RateDecision>,
}

impl FaultRules {
    /// Returns the fault that applies to a request, and counts the request.
    pub fn pick(&self, request: &RequestLine<'_>) -> Result<Option<ActiveFault>, FaultError> {
        let mut state = self.lock();
        if let Some(text) = request.fault_header {
            let fault: Fault = text.parse()?;
            let kind = text.split(['=', ';']).next().unwrap_or_default();
            let default_key = format!("{} {} {kind}", request.method, request.path);
            return Ok(state.activate(fault, &default_key));
        }
        for index in 0..state.rules.len() {
            let rule = &state.rules[index];
            if !rule.matches(request) {
                continue;
            }
            let fault = rule.fault.clone();
            if let Some(active) = state.activate(fault, &format!("rule {index}")) {
                state.rules[index].hits += 1;
                return Ok(Some(active));
            }
        }
        Ok(None)
    }

    /// Replaces all rules, and sets all counts of `times` to zero.
    pub fn replace(&self, rules: Vec<FaultRule>) {
        *self.lock() = RulesState { rules, ..RulesState::default() };
    }

    pub fn all(&self) -> Vec<FaultRule> {
        self.lock().rules.clone()
    }

    pub fn clear(&self) {
        self.replace(Vec::new());
    }

    fn lock(&self) -> MutexGuard<'_, RulesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultRule {
    fn matches(&self, request: &RequestLine<'_>) -> bool {
        let path_matches = match self.path.strip_suffix('*') {
            Some(beginning) => request.path.starts_with(beginning),
            None => request.path == self.path,
        };
        path_matches && self.method.as_ref().is_none_or(|method| method == request.method)
    }
}

impl RulesState {
    /// Counts a request under the key of the fault. Returns `None` if the `times` of the fault are used up.
    fn activate(&mut self, fault: Fault, default_key: &str) -> Option<ActiveFault> {
        let key = fault.key.clone().unwrap_or_else(|| default_key.to_owned());
        if let Some(times) = fault.times {
            let served = self.served.entry(key.clone()).or_default();
            if *served >= times {
                return None;
            }
            *served += 1;
        }
        let rate = match fault.kind {
            FaultKind::Rate(limit) => Some(self.windows.entry(key).or_default().take(limit, Instant::now())),
            _ => None,
        };
        Some(ActiveFault { fault, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str, method: Option<&str>, path: &str) -> FaultRule {
        let method = method.map(str::to_owned);
        FaultRule { text: text.to_owned(), fault: text.parse().unwrap(), method, path: path.to_owned(), hits: 0 }
    }

    fn kind(rules: &FaultRules, method: &str, path: &str, header: Option<&str>) -> Option<FaultKind> {
        let request = RequestLine { method, path, fault_header: header };
        rules.pick(&request).unwrap().map(|active| active.fault.kind)
    }

    #[test]
    fn times_are_counted_by_key() {
        let rules = FaultRules::default();
        for (header, is_broken) in [
            ("close;times=2;key=a", true),
            ("close;times=2;key=a", true),
            ("close;times=2;key=a", false),
            ("close;times=2;key=b", true),
            ("close;times=0;key=c", false),
            ("close", true),
        ] {
            assert_eq!(kind(&rules, "GET", "/x", Some(header)).is_some(), is_broken, "{header}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_and_has_times_left_applies() {
        let rules = FaultRules::default();
        rules.replace(vec![rule("close;times=1", Some("POST"), "/a"), rule("not-json", None, "/a*")]);
        assert_eq!(kind(&rules, "GET", "/b", None), None);
        assert_eq!(kind(&rules, "GET", "/a", None), Some(FaultKind::NotJson));
        assert_eq!(kind(&rules, "POST", "/a", None), Some(FaultKind::Close));
        assert_eq!(kind(&rules, "POST", "/a", None), Some(FaultKind::NotJson));
        assert_eq!(kind(&rules, "POST", "/abc", Some("truncate")), Some(FaultKind::Truncate(64)));
        assert_eq!(rules.all().iter().map(|rule| rule.hits).collect::<Vec<_>>(), [1, 2]);
        rules.clear();
        assert_eq!(kind(&rules, "POST", "/a", None), None);
    }
}

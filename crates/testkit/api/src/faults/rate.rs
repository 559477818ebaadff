//! A limit of n requests per second. The requests are counted in windows of a second, and each window begins with its first request.
//! Invariant: at most `limit` requests of one window are allowed. Each decision has the number of requests that are still allowed.

use std::time::{Duration, Instant};

const WINDOW_LENGTH: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct RateWindow {
    /// The start of the current window.
    begin: Option<Instant>,
    /// The number of requests that were allowed in the current window.
    allowed: u64,
}

/// The decision about one request.
#[derive(Debug, PartialEq, Eq)]
pub struct RateDecision {
    pub allowed: bool,
    pub limit: u64,
    /// The number of further requests that the window allows.
    pub remaining: u64,
    /// The time until the window ends.
    pub reset: Duration,
}

impl RateWindow {
    /// Decides whether a request is allowed, and counts it.
    pub fn take(&mut self, limit: u64, now: Instant) -> RateDecision {
        let begin = match self.begin {
            Some(begin) if now.duration_since(begin) < WINDOW_LENGTH => begin,
            _ => {
                *self = RateWindow { begin: Some(now), allowed: 0 };
                now
            }
        };
        let is_allowed = self.allowed < limit;
        self.allowed += u64::from(is_allowed);
        RateDecision {
            allowed: is_allowed,
            limit,
            remaining: limit - self.allowed.min(limit),
            reset: WINDOW_LENGTH - now.duration_since(begin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_allows_as_many_requests_as_its_limit() {
        let mut window = RateWindow::default();
        let start = Instant::now();
        let mut decide_at = |milliseconds| {
            let decision = window.take(2, start + Duration::from_millis(milliseconds));
            (decision.allowed, decision.remaining, decision.reset.as_millis())
        };
        assert_eq!(decide_at(0), (true, 1, 1000));
        assert_eq!(decide_at(400), (true, 0, 600));
        assert_eq!(decide_at(999), (false, 0, 1));
        assert_eq!(decide_at(1000), (true, 1, 1000));
    }
}

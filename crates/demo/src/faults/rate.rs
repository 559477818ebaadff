//! A limit of n requests per second, counted in windows that open with their first request.
//! Invariant: at most `limit` turns of one window are taken; what a turn reports is what its client may do next.

use std::time::{Duration, Instant};

const LENGTH: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Window {
    opened: Option<Instant>,
    used: u64,
}

/// How one request stands with the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    pub allowed: bool,
    pub limit: u64,
    pub remaining: u64,
    /// Until the window ends.
    pub reset: Duration,
}

impl Window {
    pub fn take(&mut self, limit: u64, now: Instant) -> Turn {
        let opened = match self.opened {
            Some(opened) if now.duration_since(opened) < LENGTH => opened,
            _ => {
                *self = Window { opened: Some(now), used: 0 };
                now
            }
        };
        let allowed = self.used < limit;
        self.used += u64::from(allowed);
        Turn { allowed, limit, remaining: limit - self.used.min(limit), reset: LENGTH - now.duration_since(opened) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_number_of_turns() {
        let (mut window, start) = (Window::default(), Instant::now());
        let mut at = |milliseconds| {
            let turn = window.take(2, start + Duration::from_millis(milliseconds));
            (turn.allowed, turn.remaining, turn.reset.as_millis())
        };
        assert_eq!(at(0), (true, 1, 1000));
        assert_eq!(at(400), (true, 0, 600));
        assert_eq!(at(999), (false, 0, 1));
        assert_eq!(at(1000), (true, 1, 1000));
    }
}

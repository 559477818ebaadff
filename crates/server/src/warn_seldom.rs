//! Warnings about something that may happen thousands of times a second.
//! Invariant: a warning is logged at most once in a time, with the number of times since the last one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two warnings.
const INTERVAL: Duration = Duration::from_secs(10);

/// Limits how often one warning is logged.
pub struct WarnSeldom(Mutex<Warned>);

struct Warned {
    /// When the last warning was logged.
    last: Option<Instant>,
    /// How often the reason came up since then.
    times: u64,
}

impl WarnSeldom {
    pub fn new() -> Self {
        Self(Mutex::new(Warned { last: None, times: 0 }))
    }

    /// Calls `log` with the number of times since its last call, unless that was a short time ago.
    pub fn warn(&self, log: impl FnOnce(u64)) {
        let times = {
            let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            warned.times += 1;
            if warned.last.is_some_and(|last| last.elapsed() < INTERVAL) {
                return;
            }
            warned.last = Some(Instant::now());
            std::mem::take(&mut warned.times)
        };
        log(times);
    }
}

#[cfg(test)]
mod tests {
    use super::WarnSeldom;

    #[test]
    fn a_thousand_times_in_a_moment_are_one_warning() {
        let seldom = WarnSeldom::new();
        let mut logged = Vec::new();
        (0..1_000).for_each(|_| seldom.warn(|times| logged.push(times)));
        assert_eq!(logged, [1]);
        assert_eq!(seldom.0.lock().unwrap().times, 999, "the next warning tells them");
    }
}

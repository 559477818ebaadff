//! Measures the time of repeated rounds of the same work.
//! Invariant: the first round is not counted; nothing is asserted about time.

use std::time::{Duration, Instant};

/// Returns the median and the best of some rounds in milliseconds.
pub fn median_and_best(rounds: usize, mut work: impl FnMut()) -> (f64, f64) {
    work();
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    (ms(times[rounds / 2]), ms(times[0]))
}

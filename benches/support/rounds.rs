//! Measures the time of repeated rounds of the same work.
//! Invariant: the first round is not counted. Nothing is asserted about time.

use std::time::{Duration, Instant};

/// Runs `work` once as a warm-up and then `rounds` times, and returns the median and the shortest time in milliseconds.
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

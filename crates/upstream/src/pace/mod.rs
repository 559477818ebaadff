//! How fast an origin is called: by its catalog's word, and by its own.
//! Invariants: calls leave an origin's bucket in the order in which they asked; a pause that an origin asked for holds for
//! the tenant that was told, since limits usually belong to a credential; no pause is longer than its bound.

mod in_flight;
mod signals;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::{Origin, Response, TenantId, Timestamp};
use ports::upstream::Pace;

pub(crate) use in_flight::{InFlight, Place};

use crate::retry::ASKED_AT_MOST;

/// Above this many, those that hold nobody up are forgotten.
const REMEMBERED: usize = 1024;

#[derive(Default)]
pub(crate) struct Pacer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When each origin's bucket will be full again, in milliseconds.
    full_at: HashMap<Origin, f64>,
    closed_until: HashMap<(TenantId, Origin), Timestamp>,
}

impl Pacer {
    /// How long the next call, which could leave after `delay`, has to wait. Its turn is taken with this.
    pub(crate) fn turn(&self, origin: &Origin, pace: Option<&Pace>, now: Timestamp, delay: Duration) -> Duration {
        let Some(pace) = pace else { return delay };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = millis(now);
        if state.full_at.len() >= REMEMBERED {
            state.full_at.retain(|_, full_at| *full_at > now);
        }
        let interval = 1000.0 / pace.per_second;
        let soonest = now + delay.as_secs_f64() * 1000.0;
        let full_at = state.full_at.entry(origin.clone()).or_insert(soonest);
        let begins = full_at.max(soonest);
        *full_at = begins + interval;
        let at = (begins - interval * f64::from(pace.burst.max(1) - 1)).max(soonest);
        // Whole milliseconds, as the clock counts: rounded up, so that the bucket is never ahead.
        Duration::try_from_secs_f64(((at - now) / 1000.0).max(0.0)).map_or(Duration::MAX, |wait| {
            Duration::from_millis(u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX))
        })
    }

    /// How long an origin asked this tenant to stay away. Longer than the bound is not waited for: the call goes out and
    /// the origin answers it.
    pub(crate) fn pause(&self, tenant: &TenantId, origin: &Origin, now: Timestamp) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = state.closed_until.get(&(tenant.clone(), origin.clone())) else { return Duration::ZERO };
        let left = Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0));
        if left > ASKED_AT_MOST { Duration::ZERO } else { left }
    }

    /// Takes note of what an answer says about the calls after it.
    pub(crate) fn heed(&self, tenant: &TenantId, origin: &Origin, answer: &Response, now: Timestamp) {
        let Some(wait) = signals::wait(answer, now) else { return };
        let until = Timestamp(now.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed_until.len() >= REMEMBERED {
            state.closed_until.retain(|_, until| until.0 > now.0);
        }
        state.closed_until.insert((tenant.clone(), origin.clone()), until);
    }
}

#[allow(clippy::cast_precision_loss)]
fn millis(at: Timestamp) -> f64 {
    at.0 as f64
}

/// Whether a rate can be kept at all.
pub(crate) fn usable(pace: &Pace) -> bool {
    pace.per_second.is_finite() && pace.per_second > 0.0 && pace.concurrent != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(per_second: f64, burst: u32) -> Pace {
        Pace { per_second, burst, concurrent: None }
    }

    fn origin(n: usize) -> Origin {
        Origin::parse(&format!("https://h{n}.example")).unwrap()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let pacer = Pacer::default();
        let turn = |at: i64| {
            u64::try_from(pacer.turn(&origin(0), Some(&pace(4.0, 3)), Timestamp(at), Duration::ZERO).as_millis())
                .unwrap()
        };
        let waits: Vec<_> = (0..6).map(|_| turn(1_000_000)).collect();
        assert_eq!(waits, [0, 0, 0, 250, 500, 750]);
        // After a rest the burst is there again, and no more than that.
        let waits: Vec<_> = (0..4).map(|_| turn(9_000_000)).collect();
        assert_eq!(waits, [0, 0, 0, 250]);
        assert_eq!(pacer.turn(&origin(1), Some(&pace(4.0, 3)), Timestamp(9_000_000), Duration::ZERO), Duration::ZERO);
        assert_eq!(pacer.turn(&origin(0), None, Timestamp(9_000_000), Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn in_any_second_no_more_than_burst_and_rate_leave() {
        for (rate, burst) in [(1.0, 1), (2.5, 4), (10.0, 10), (7.0, 0), (100.0, 1)] {
            let pacer = Pacer::default();
            let leaves: Vec<u128> = (0..200_i64)
                .map(|n| {
                    let now = n * 37 % 500 + n * 10;
                    let wait = pacer.turn(&origin(0), Some(&pace(rate, burst)), Timestamp(now), Duration::ZERO);
                    u128::try_from(now).unwrap() + wait.as_millis()
                })
                .collect();
            for start in &leaves {
                let within = leaves.iter().filter(|at| *at >= start && **at < start + 1000).count();
                #[allow(clippy::cast_precision_loss)]
                let most = rate + f64::from(burst.max(1)) + 1.0;
                assert!((within as f64) <= most, "{rate} {burst}: {within}");
            }
        }
    }

    #[test]
    fn origins_at_rest_are_forgotten() {
        let pacer = Pacer::default();
        for n in 0..3 * REMEMBERED {
            let now = Timestamp(i64::try_from(n).unwrap() * 10_000);
            pacer.turn(&origin(n), Some(&pace(1.0, 1)), now, Duration::ZERO);
            let answer = Response { status: 429, headers: vec![("retry-after".into(), "1".into())], body: vec![] };
            pacer.heed(&TenantId::local(), &origin(n), &answer, now);
        }
        let state = pacer.state.lock().unwrap();
        assert!(state.full_at.len() <= REMEMBERED + 1 && state.closed_until.len() <= REMEMBERED + 1);
    }

    #[test]
    fn what_cannot_be_kept_is_no_pace() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!usable(&pace(rate, 1)));
        }
        assert!(usable(&pace(0.1, 0)));
        assert!(!usable(&Pace { concurrent: Some(0), ..pace(1.0, 1) }));
    }
}

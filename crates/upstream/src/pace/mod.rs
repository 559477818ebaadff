//! The type `Pacer`: delays calls to an origin, by the rate in its catalog and by the pauses that its answers ask for.
//! A turn is the time at which a call may be sent.
//!
//! Invariants:
//! - Calls to an origin get their turns in the order in which they asked.
//! - A pause applies only to the tenant whose call received it, because limits of APIs usually belong to a credential.
//! - A call waits for a pause only if the pause is at most `MAX_RETRY_AFTER`.

mod fair_semaphore;
mod in_flight;
mod rate_limit;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base::{Origin, Response, TenantId, Timestamp};
use ports::upstream::Pace;

pub(crate) use in_flight::{CallPermit, InFlight};

use crate::retry::MAX_RETRY_AFTER;

/// If a map has this number of entries, a new entry first removes the entries that delay no call.
const MAX_IDLE_ENTRIES: usize = 1024;

/// The token buckets and pauses of all origins.
#[derive(Default)]
pub(crate) struct Pacer {
    state: Mutex<PacerState>,
}

#[derive(Default)]
struct PacerState {
    /// The time at which each origin's token bucket will be full again, in milliseconds since 1970. This number
    /// describes the whole bucket, because the number of missing tokens follows from it and the rate.
    full_at: HashMap<Origin, f64>,
    /// The end of the pause that an origin asked for in an answer to a tenant.
    paused_until: HashMap<(TenantId, Origin), Timestamp>,
}

impl Pacer {
    /// Reserves the next turn at an origin that is at least `delay` from now. Returns the time until the turn. The
    /// caller must wait for this time.
    pub(crate) fn take_turn(&self, origin: &Origin, pace: Option<&Pace>, now: Timestamp, delay: Duration) -> Duration {
        let Some(pace) = pace else { return delay };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = to_millis(now);
        if state.full_at.len() >= MAX_IDLE_ENTRIES {
            state.full_at.retain(|_, full_at| *full_at > now);
        }
        let interval = 1000.0 / pace.per_second;
        let earliest = now + delay.as_secs_f64() * 1000.0;
        let full_at = state.full_at.entry(origin.clone()).or_insert(earliest);
        // `full_before` is the time at which the bucket would be full without this call. The call takes a token, which
        // is refilled after `interval`.
        let full_before = full_at.max(earliest);
        *full_at = full_before + interval;
        // A bucket of `burst` tokens has a token for this call when at most `burst - 1` tokens are missing.
        let turn = (full_before - interval * f64::from(pace.burst.max(1) - 1)).max(earliest);
        // The clock counts whole milliseconds. The wait is rounded up, so that no call is sent before its turn.
        Duration::try_from_secs_f64(((turn - now) / 1000.0).max(0.0)).map_or(Duration::MAX, |wait| {
            Duration::from_millis(u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX))
        })
    }

    /// Returns the remaining time of the pause that an origin asked this tenant for. A pause that is longer than
    /// `MAX_RETRY_AFTER` is ignored: the call is sent, and the caller gets the origin's answer instead of a long wait.
    pub(crate) fn remaining_pause(&self, tenant: &TenantId, origin: &Origin, now: Timestamp) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = state.paused_until.get(&(tenant.clone(), origin.clone())) else { return Duration::ZERO };
        let remaining = Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0));
        if remaining > MAX_RETRY_AFTER { Duration::ZERO } else { remaining }
    }

    /// Records the pause that an answer asks for. An answer that asks for no pause has no effect.
    pub(crate) fn record_answer(&self, tenant: &TenantId, origin: &Origin, answer: &Response, now: Timestamp) {
        let Some(pause) = rate_limit::requested_pause(answer, now) else { return };
        let until = Timestamp(now.0.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.paused_until.len() >= MAX_IDLE_ENTRIES {
            state.paused_until.retain(|_, until| until.0 > now.0);
        }
        state.paused_until.insert((tenant.clone(), origin.clone()), until);
    }
}

// why: milliseconds since 1970 need 41 bits, and an `f64` represents integers of 53 bits exactly.
#[allow(clippy::cast_precision_loss)]
fn to_millis(moment: Timestamp) -> f64 {
    moment.0 as f64
}

/// Returns whether the pace is valid: the rate is positive and finite, and at least one concurrent call is allowed.
pub(crate) fn is_valid(pace: &Pace) -> bool {
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
        let wait_ms = |now: i64| {
            let wait = pacer.take_turn(&origin(0), Some(&pace(4.0, 3)), Timestamp(now), Duration::ZERO);
            u64::try_from(wait.as_millis()).unwrap()
        };
        let waits: Vec<_> = (0..6).map(|_| wait_ms(1_000_000)).collect();
        assert_eq!(waits, [0, 0, 0, 250, 500, 750]);
        // After a long time without calls the bucket is full again and allows one burst.
        let waits: Vec<_> = (0..4).map(|_| wait_ms(9_000_000)).collect();
        assert_eq!(waits, [0, 0, 0, 250]);
        let now = Timestamp(9_000_000);
        assert_eq!(pacer.take_turn(&origin(1), Some(&pace(4.0, 3)), now, Duration::ZERO), Duration::ZERO);
        assert_eq!(pacer.take_turn(&origin(0), None, now, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn no_second_has_more_calls_than_burst_and_rate() {
        for (rate, burst) in [(1.0, 1), (2.5, 4), (10.0, 10), (7.0, 0), (100.0, 1)] {
            let pacer = Pacer::default();
            let departures: Vec<u128> = (0..200_i64)
                .map(|n| {
                    let now = n * 37 % 500 + n * 10;
                    let wait = pacer.take_turn(&origin(0), Some(&pace(rate, burst)), Timestamp(now), Duration::ZERO);
                    u128::try_from(now).unwrap() + wait.as_millis()
                })
                .collect();
            for start in &departures {
                let calls = departures.iter().filter(|time| *time >= start && **time < start + 1000).count();
                #[allow(clippy::cast_precision_loss)]
                let max_calls = rate + f64::from(burst.max(1)) + 1.0;
                assert!((calls as f64) <= max_calls, "{rate} {burst}: {calls}");
            }
        }
    }

    #[test]
    fn entries_of_idle_origins_are_dropped() {
        let pacer = Pacer::default();
        for n in 0..3 * MAX_IDLE_ENTRIES {
            let now = Timestamp(i64::try_from(n).unwrap() * 10_000);
            pacer.take_turn(&origin(n), Some(&pace(1.0, 1)), now, Duration::ZERO);
            let answer = Response { status: 429, headers: vec![("retry-after".into(), "1".into())], body: vec![] };
            pacer.record_answer(&TenantId::local(), &origin(n), &answer, now);
        }
        let state = pacer.state.lock().unwrap();
        assert!(state.full_at.len() <= MAX_IDLE_ENTRIES + 1 && state.paused_until.len() <= MAX_IDLE_ENTRIES + 1);
    }

    #[test]
    fn an_impossible_rate_is_recognised() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!is_valid(&pace(rate, 1)));
        }
        assert!(is_valid(&pace(0.1, 0)));
        assert!(!is_valid(&Pace { concurrent: Some(0), ..pace(1.0, 1) }));
    }
}

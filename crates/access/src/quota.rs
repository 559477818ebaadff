//! Call rates: a limit on how often each tenant may call, as a token bucket per tenant that fills up within a minute.
//! Invariant: a tenant without a limit is never refused. A clock that is set back gives no extra calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use base::{TenantId, Timestamp};

/// The call limits of all tenants and the use of the current minute.
#[derive(Default)]
pub struct CallRates {
    /// Calls per minute, for tenants that have a limit.
    limits: BTreeMap<TenantId, u32>,
    /// The bucket of each limited tenant that has called. A restart forgets it, which gives at most one minute's calls.
    buckets: Mutex<HashMap<TenantId, Bucket>>,
}

/// The calls that a tenant may still make.
struct Bucket {
    /// A fraction of a call counts, so that a bucket fills evenly.
    calls_left: f64,
    /// The time of the last refill.
    refilled: Timestamp,
}

/// The refusal of a call of a tenant that has used up its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this tenant's calls per minute are used up; try again in {retry_after_seconds} s")]
pub struct RateLimited {
    /// The time after which the bucket has a call again, rounded up.
    pub retry_after_seconds: u64,
}

impl CallRates {
    /// Limits each named tenant to its number of calls per minute.
    pub fn new(limits: BTreeMap<TenantId, u32>) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    /// Takes one call from the tenant's bucket, or refuses it.
    pub fn take_call(&self, tenant: &TenantId, now: Timestamp) -> Result<(), RateLimited> {
        let Some(per_minute) = self.limits.get(tenant).map(|limit| f64::from(*limit)) else { return Ok(()) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(tenant.clone()).or_insert(Bucket { calls_left: per_minute, refilled: now });
        // A clock that was set back counts as no time, so it does not fill the bucket again.
        let minutes = now.0.saturating_sub(bucket.refilled.0).max(0) as f64 / 60_000.0;
        bucket.calls_left = (bucket.calls_left + minutes * per_minute).min(per_minute);
        bucket.refilled = now;
        if bucket.calls_left >= 1.0 {
            bucket.calls_left -= 1.0;
            return Ok(());
        }
        // The time in which the missing fraction of a call flows in. Rounded up, because a client that comes back earlier
        // would be refused again.
        let retry_after_seconds = ((1.0 - bucket.calls_left) * 60.0 / per_minute).ceil() as u64;
        Err(RateLimited { retry_after_seconds })
    }
}

#[cfg(test)]
mod tests {
    // why: a failed expectation is the test's own failure.
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_tenant_gets_its_calls_back_within_a_minute() {
        let acme = TenantId::parse("acme").unwrap();
        let unlimited = TenantId::local();
        let rates = CallRates::new(BTreeMap::from([(acme.clone(), 2)]));
        let take = |seconds: i64| {
            rates.take_call(&acme, Timestamp(seconds * 1000)).map_err(|refused| refused.retry_after_seconds)
        };
        assert_eq!([take(0), take(0), take(0)], [Ok(()), Ok(()), Err(30)]);
        assert_eq!(take(29), Err(1));
        assert_eq!([take(30), take(10)], [Ok(()), Err(30)]);
        assert!((0..1000).all(|_| rates.take_call(&unlimited, Timestamp(0)).is_ok()));
    }
}

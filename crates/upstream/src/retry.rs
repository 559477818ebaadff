//! The type `RetryPolicy`: decides whether a request is sent again after a try, and how long to wait before the next
//! try.
//!
//! Invariants:
//! - A request that may change something is sent again only if no byte of it was sent.
//! - The number of tries and their total time are bounded.
//! - Equal calls wait equally long, so that a test can predict the wait.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, UNIX_EPOCH};

use base::{Response, Timestamp};
use ports::upstream::Call;

use crate::failure::Failure;

/// The wait before the second try, without jitter. It doubles with each try up to `MAX_BACKOFF`.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// The longest wait that an origin may ask for. If an origin asks for more, the call returns the origin's answer, and
/// the caller can decide to wait.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The policy for the tries of one call.
pub(crate) struct RetryPolicy {
    /// Whether the request may be sent again after it has arrived, as a read may.
    repeatable: bool,
    /// The largest number of tries after the first one.
    max_retries: u32,
    /// A hash of the call, from which the jitter is computed. Different calls have different jitter, and equal calls
    /// have equal jitter.
    seed: u64,
}

impl RetryPolicy {
    pub(crate) fn of_call(call: &Call, max_retries: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        (call.tenant.as_str(), call.request.label(), &call.request.query).hash(&mut hasher);
        Self { repeatable: call.repeatable, max_retries, seed: hasher.finish() }
    }

    /// Returns the policy for a request that this crate makes for itself, such as a token request. Such a request may
    /// be repeated.
    pub(crate) fn of_own_request(label: &str, max_retries: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        label.hash(&mut hasher);
        Self { repeatable: true, max_retries, seed: hasher.finish() }
    }

    /// Returns the wait before the next try, or `None` if this outcome is final. `tries` is the number of tries so far,
    /// and `remaining` is the time that is left for the wait and all further tries.
    pub(crate) fn wait_before_retry(
        &self,
        tries: u32,
        outcome: &Result<Response, Failure>,
        now: Timestamp,
        remaining: Duration,
    ) -> Option<Duration> {
        if tries > self.max_retries || !self.may_retry(outcome) {
            return None;
        }
        let backoff = self.backoff(tries);
        let wait = match outcome.as_ref().ok().and_then(|response| retry_after(response, now)) {
            Some(requested) if requested > MAX_RETRY_AFTER => return None,
            Some(requested) => requested.max(backoff),
            None => backoff,
        };
        // A wait that leaves no time for another try is not started, because it would only delay the caller.
        (wait < remaining).then_some(wait)
    }

    fn may_retry(&self, outcome: &Result<Response, Failure>) -> bool {
        match outcome {
            // Nothing was sent, so even a write may be sent again.
            Err(Failure::Connect(_)) => true,
            Err(Failure::Lost(_) | Failure::TimedOut { answering: false }) => self.repeatable,
            // These statuses mean that the origin was busy or could not be reached, so the same request may succeed
            // later.
            Ok(response) => self.repeatable && matches!(response.status, 429 | 502 | 503 | 504),
            // Another try would end with the same failure (a redirect, a body that is too large, …).
            Err(_) => false,
        }
    }

    /// Returns a wait between half and all of the doubled backoff. The jitter spreads the retries of calls that failed
    /// at the same moment.
    fn backoff(&self, tries: u32) -> Duration {
        let factor = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = FIRST_BACKOFF.saturating_mul(factor).min(MAX_BACKOFF);
        let mut hasher = DefaultHasher::new();
        (self.seed, tries).hash(&mut hasher);
        let jitter = u32::try_from(hasher.finish() % 512).unwrap_or(0);
        whole / 2 + whole / 2 * jitter / 512
    }
}

/// Returns the wait that the header `Retry-After` asks for, in seconds or as a date. An unreadable value counts as a
/// missing header.
pub(crate) fn retry_after(response: &Response, now: Timestamp) -> Option<Duration> {
    let text = response.header("retry-after")?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(since_epoch.saturating_sub(Duration::from_millis(u64::try_from(now.0).unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Method, Origin, Request, TenantId};

    fn policy(repeatable: bool, query: &str) -> RetryPolicy {
        let request = Request {
            method: Method::Get,
            origin: Origin::parse("https://x.example").unwrap(),
            path: "/a".into(),
            query: vec![("q".into(), query.into())],
            headers: vec![],
            body: None,
            auth: None,
            anonymous: false,
        };
        RetryPolicy::of_call(&Call { tenant: TenantId::local(), request, repeatable, pace: None }, 3)
    }

    fn answer(status: u16, retry_after: Option<&str>) -> Result<Response, Failure> {
        let headers = retry_after.map(|text| ("retry-after".to_owned(), text.to_owned())).into_iter().collect();
        Ok(Response { status, headers, body: vec![] })
    }

    const NOW: Timestamp = Timestamp(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
    const AMPLE: Duration = Duration::from_secs(60);

    #[test]
    fn waits_double_within_their_bounds_and_are_equal_for_equal_calls() {
        for tries in 1..=3 {
            let wait = policy(true, "1").wait_before_retry(tries, &answer(503, None), NOW, AMPLE).unwrap();
            let whole = FIRST_BACKOFF * (1 << (tries - 1));
            assert!(wait >= whole / 2 && wait <= whole, "{tries}: {wait:?}");
            assert_eq!(Some(wait), policy(true, "1").wait_before_retry(tries, &answer(503, None), NOW, AMPLE));
        }
        assert_eq!(policy(true, "1").wait_before_retry(4, &answer(503, None), NOW, AMPLE), None);
        assert!(policy(true, "1").backoff(u32::MAX) <= MAX_BACKOFF);
        let different: std::collections::BTreeSet<_> =
            (0..20).map(|n| policy(true, &n.to_string()).backoff(1)).collect();
        assert!(different.len() > 10, "{different:?}");
    }

    #[test]
    fn a_retry_is_made_only_if_it_is_safe_and_may_help() {
        let is_retried =
            |repeatable, outcome| policy(repeatable, "").wait_before_retry(1, &outcome, NOW, AMPLE).is_some();
        let cause = || -> ports::Cause { "x".into() };
        for status in [429, 502, 503, 504] {
            assert!(is_retried(true, answer(status, None)));
            assert!(!is_retried(false, answer(status, None)));
        }
        for status in [200, 204, 304, 400, 401, 404, 408, 409, 500, 501] {
            assert!(!is_retried(true, answer(status, None)), "{status}");
        }
        assert!(is_retried(true, Err(Failure::Connect(cause()))) && is_retried(false, Err(Failure::Connect(cause()))));
        assert!(is_retried(true, Err(Failure::Lost(cause()))) && !is_retried(false, Err(Failure::Lost(cause()))));
        assert!(is_retried(true, Err(Failure::TimedOut { answering: false })));
        assert!(!is_retried(false, Err(Failure::TimedOut { answering: false })));
        assert!(!is_retried(true, Err(Failure::TimedOut { answering: true })));
        assert!(!is_retried(true, Err(Failure::TooLarge)) && !is_retried(true, Err(Failure::Redirect(String::new()))));
    }

    #[test]
    fn retry_after_is_honoured_up_to_its_bound() {
        let wait = |text| policy(true, "").wait_before_retry(1, &answer(429, Some(text)), NOW, AMPLE);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait(" 30 "), Some(Duration::from_secs(30)));
        assert_eq!(wait("31"), None);
        assert_eq!(wait("99999999999999999999999"), None);
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:42 GMT"), Some(Duration::from_secs(5)));
        assert_eq!(wait("Sun, 06 Nov 1994 09:49:42 GMT"), None);
        let backoff = policy(true, "").backoff(1);
        for text in ["0", "Sun, 06 Nov 1994 08:00:00 GMT", "soon", "", "-1", "1.5"] {
            assert_eq!(wait(text), Some(backoff), "{text}");
        }
    }

    #[test]
    fn a_wait_that_exceeds_the_remaining_time_is_not_started() {
        let wait =
            |seconds| policy(true, "").wait_before_retry(1, &answer(429, Some("7")), NOW, Duration::from_secs(seconds));
        assert_eq!(wait(7), None);
        assert_eq!(wait(8), Some(Duration::from_secs(7)));
    }
}

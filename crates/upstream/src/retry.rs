//! Whether a call is tried again, and after how long.
//! Invariant: what may change something is repeated only if nothing of it left; the number of tries and their time are
//! bounded; an equal call waits equally long, so a test can tell the wait.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, UNIX_EPOCH};

use base::{Response, Timestamp};
use ports::upstream::Call;

use crate::failure::Failure;

/// The first wait, before jitter; it doubles with each try up to the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(8);

/// Who asks for a longer wait than this gets none: the answer goes to the caller.
pub(crate) const ASKED_AT_MOST: Duration = Duration::from_secs(30);

pub(crate) struct Retries {
    repeatable: bool,
    limit: u32,
    seed: u64,
}

impl Retries {
    pub(crate) fn of(call: &Call, limit: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        (call.tenant.as_str(), call.request.label(), &call.request.query).hash(&mut hasher);
        Self { repeatable: call.repeatable, limit, seed: hasher.finish() }
    }

    /// For what this adapter asks on its own behalf, and may ask again.
    pub(crate) fn own(label: &str, limit: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        label.hash(&mut hasher);
        Self { repeatable: true, limit, seed: hasher.finish() }
    }

    /// The wait before the next try, after `tried` of them; `None` if this outcome stands. `left` is the time that this
    /// wait and all further tries have.
    pub(crate) fn wait(
        &self,
        tried: u32,
        outcome: &Result<Response, Failure>,
        now: Timestamp,
        left: Duration,
    ) -> Option<Duration> {
        if tried > self.limit || !self.worth(outcome) {
            return None;
        }
        let own = self.backoff(tried);
        let wait = match outcome.as_ref().ok().and_then(|response| asked(response, now)) {
            Some(asked) if asked > ASKED_AT_MOST => return None,
            Some(asked) => asked.max(own),
            None => own,
        };
        (wait < left).then_some(wait)
    }

    fn worth(&self, outcome: &Result<Response, Failure>) -> bool {
        match outcome {
            Err(Failure::Connect(_)) => true,
            Err(Failure::Lost(_) | Failure::TimedOut { answering: false }) => self.repeatable,
            Ok(response) => self.repeatable && matches!(response.status, 429 | 502 | 503 | 504),
            Err(_) => false,
        }
    }

    /// Between half and the whole of the doubled wait.
    fn backoff(&self, tried: u32) -> Duration {
        let whole = FIRST.saturating_mul(1_u32.checked_shl(tried.saturating_sub(1)).unwrap_or(u32::MAX)).min(LONGEST);
        let mut hasher = DefaultHasher::new();
        (self.seed, tried).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() % 512).unwrap_or(0);
        whole / 2 + whole / 2 * part / 512
    }
}

/// `Retry-After`: seconds, or a date. One that cannot be read is none.
pub(crate) fn asked(response: &Response, now: Timestamp) -> Option<Duration> {
    let text = response.header("retry-after")?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let at = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(at.saturating_sub(Duration::from_millis(u64::try_from(now.0).unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Method, Origin, Request, TenantId};

    fn retries(repeatable: bool, query: &str) -> Retries {
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
        Retries::of(&Call { tenant: TenantId::local(), request, repeatable, pace: None }, 3)
    }

    fn answer(status: u16, retry_after: Option<&str>) -> Result<Response, Failure> {
        let headers = retry_after.map(|text| ("retry-after".to_owned(), text.to_owned())).into_iter().collect();
        Ok(Response { status, headers, body: vec![] })
    }

    const NOW: Timestamp = Timestamp(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
    const AMPLE: Duration = Duration::from_secs(60);

    #[test]
    fn waits_double_within_their_bounds_and_repeat_for_an_equal_call() {
        for tried in 1..=3 {
            let wait = retries(true, "1").wait(tried, &answer(503, None), NOW, AMPLE).unwrap();
            let whole = FIRST * (1 << (tried - 1));
            assert!(wait >= whole / 2 && wait <= whole, "{tried}: {wait:?}");
            assert_eq!(Some(wait), retries(true, "1").wait(tried, &answer(503, None), NOW, AMPLE));
        }
        assert_eq!(retries(true, "1").wait(4, &answer(503, None), NOW, AMPLE), None);
        assert!(retries(true, "1").backoff(u32::MAX) <= LONGEST);
        let different: std::collections::BTreeSet<_> =
            (0..20).map(|n| retries(true, &n.to_string()).backoff(1)).collect();
        assert!(different.len() > 10, "{different:?}");
    }

    #[test]
    fn only_what_is_safe_and_may_help_is_repeated() {
        let repeated = |repeatable, outcome| retries(repeatable, "").wait(1, &outcome, NOW, AMPLE).is_some();
        let cause = || -> ports::Cause { "x".into() };
        for status in [429, 502, 503, 504] {
            assert!(repeated(true, answer(status, None)));
            assert!(!repeated(false, answer(status, None)));
        }
        for status in [200, 204, 304, 400, 401, 404, 408, 409, 500, 501] {
            assert!(!repeated(true, answer(status, None)), "{status}");
        }
        assert!(repeated(true, Err(Failure::Connect(cause()))) && repeated(false, Err(Failure::Connect(cause()))));
        assert!(repeated(true, Err(Failure::Lost(cause()))) && !repeated(false, Err(Failure::Lost(cause()))));
        assert!(repeated(true, Err(Failure::TimedOut { answering: false })));
        assert!(!repeated(false, Err(Failure::TimedOut { answering: false })));
        assert!(!repeated(true, Err(Failure::TimedOut { answering: true })));
        assert!(!repeated(true, Err(Failure::TooLarge)) && !repeated(true, Err(Failure::Redirect(String::new()))));
    }

    #[test]
    fn retry_after_is_honoured_up_to_its_bound() {
        let wait = |text| retries(true, "").wait(1, &answer(429, Some(text)), NOW, AMPLE);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait(" 30 "), Some(Duration::from_secs(30)));
        assert_eq!(wait("31"), None);
        assert_eq!(wait("99999999999999999999999"), None);
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:42 GMT"), Some(Duration::from_secs(5)));
        assert_eq!(wait("Sun, 06 Nov 1994 09:49:42 GMT"), None);
        let own = retries(true, "").backoff(1);
        for text in ["0", "Sun, 06 Nov 1994 08:00:00 GMT", "soon", "", "-1", "1.5"] {
            assert_eq!(wait(text), Some(own), "{text}");
        }
    }

    #[test]
    fn a_wait_that_does_not_fit_is_not_begun() {
        let wait = |left| retries(true, "").wait(1, &answer(429, Some("7")), NOW, Duration::from_secs(left));
        assert_eq!(wait(7), None);
        assert_eq!(wait(8), Some(Duration::from_secs(7)));
    }
}

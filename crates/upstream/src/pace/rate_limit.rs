//! Reads the pause that an origin asks for from the headers of its answer: `Retry-After` and the rate limit headers.
//! Invariant: a header that cannot be read has no effect.

use std::time::Duration;

use base::{Response, Timestamp};

use crate::retry::retry_after;

/// A reset value above this one is a time in seconds since 1970. A smaller value is a number of seconds from now. APIs
/// use both forms.
const MIN_EPOCH_SECONDS: f64 = 1e9;
/// A reset value above this one is a time in milliseconds since 1970.
const MIN_EPOCH_MS: f64 = 1e11;

/// Returns the pause that the answer asks for: the `Retry-After` of a 429 or 503, or the time until the reset of a rate
/// limit that has no calls left.
pub(crate) fn requested_pause(answer: &Response, now: Timestamp) -> Option<Duration> {
    let is_refusal = matches!(answer.status, 429 | 503);
    is_refusal.then(|| retry_after(answer, now)).flatten().or_else(|| pause_of_spent_limit(answer, now))
}

/// Returns the time until the reset of a rate limit, if the limit has no calls left.
fn pause_of_spent_limit(answer: &Response, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| answer.header(name).and_then(first_number);
    if let Some(limit) = answer.header("ratelimit").and_then(RateLimit::parse) {
        return if limit.remaining <= 0.0 { time_until(limit.reset, now) } else { None };
    }
    for prefix in ["ratelimit", "x-ratelimit", "x-rate-limit"] {
        let Some(remaining) = number(&format!("{prefix}-remaining")) else { continue };
        if remaining > 0.0 {
            return None;
        }
        return time_until(number(&format!("{prefix}-reset"))?, now);
    }
    None
}

/// The values of a `RateLimit` header.
struct RateLimit {
    /// The number of calls that are left until the reset.
    remaining: f64,
    reset: f64,
}

impl RateLimit {
    /// Parses the older form `limit=10, remaining=0, reset=5` or the newer form `"default";r=0;t=5`.
    fn parse(text: &str) -> Option<Self> {
        let value = |names: [&str; 2]| {
            let mut pairs = text.split([',', ';']).filter_map(|part| part.trim().split_once('='));
            pairs.find(|(name, _)| names.contains(&name.trim())).and_then(|(_, text)| first_number(text))
        };
        Some(Self { remaining: value(["remaining", "r"])?, reset: value(["reset", "t"])? })
    }
}

/// Parses the first number of a list such as `0, 0;window=60`, without its parameters.
fn first_number(text: &str) -> Option<f64> {
    let text = text.split([',', ';']).next()?.trim();
    // `f64::from_str` would also accept `NaN`, `inf`, `1e9` and negative numbers.
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain { text.parse().ok() } else { None }
}

/// Returns the time until a reset value, which may be a time since 1970 or a number of seconds from now.
// why: milliseconds since 1970 need 41 bits, and an `f64` represents integers of 53 bits exactly.
#[allow(clippy::cast_precision_loss)]
fn time_until(reset: f64, now: Timestamp) -> Option<Duration> {
    let now = now.0 as f64 / 1000.0;
    let seconds = if reset > MIN_EPOCH_MS {
        reset / 1000.0 - now
    } else if reset > MIN_EPOCH_SECONDS {
        reset - now
    } else {
        reset
    };
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn pause_seconds(status: u16, headers: &[(&str, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        requested_pause(&Response { status, headers, body: vec![] }, NOW).map(|pause| pause.as_secs())
    }

    #[test]
    fn every_form_of_a_spent_limit_asks_for_a_pause() {
        assert_eq!(pause_seconds(200, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "7")]), Some(7));
        assert_eq!(pause_seconds(200, &[("ratelimit-remaining", "0, 5;w=60"), ("ratelimit-reset", "7;w=60")]), Some(7));
        assert_eq!(pause_seconds(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000009")]), Some(9));
        assert_eq!(
            pause_seconds(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000009000")]),
            Some(9)
        );
        assert_eq!(pause_seconds(200, &[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "12")]), Some(12));
        assert_eq!(pause_seconds(200, &[("ratelimit", "limit=10, remaining=0, reset=5")]), Some(5));
        assert_eq!(pause_seconds(200, &[("ratelimit", "\"default\";r=0;t=5")]), Some(5));
        assert_eq!(pause_seconds(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000000")]), Some(0));
        assert_eq!(
            pause_seconds(429, &[("retry-after", "3"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "7")]),
            Some(3)
        );
        assert_eq!(pause_seconds(503, &[("retry-after", "3")]), Some(3));
    }

    #[test]
    fn a_limit_with_calls_left_or_without_a_readable_number_asks_for_no_pause() {
        assert_eq!(pause_seconds(200, &[]), None);
        assert_eq!(pause_seconds(200, &[("retry-after", "3")]), None);
        assert_eq!(pause_seconds(200, &[("ratelimit-remaining", "1"), ("ratelimit-reset", "7")]), None);
        assert_eq!(pause_seconds(200, &[("ratelimit-remaining", "0")]), None);
        assert_eq!(pause_seconds(200, &[("ratelimit", "\"default\";r=1;t=5")]), None);
        for bad in ["", "soon", "-1", "1e9", "NaN", "inf"] {
            assert_eq!(pause_seconds(200, &[("ratelimit-remaining", "0"), ("ratelimit-reset", bad)]), None, "{bad}");
            assert_eq!(pause_seconds(200, &[("ratelimit-remaining", bad), ("ratelimit-reset", "7")]), None, "{bad}");
        }
    }
}

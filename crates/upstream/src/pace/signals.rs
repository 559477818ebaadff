//! What an answer's headers say about the calls after it.
//! Invariant: a header that cannot be read says nothing.

use std::time::Duration;

use base::{Response, Timestamp};

use crate::retry::asked;

/// Above this a reset is a moment since 1970 and not a number of seconds; in milliseconds above the other.
const EPOCH: f64 = 1e9;
const EPOCH_MS: f64 = 1e11;

/// How long to stay away, if the answer asks for that: `Retry-After` with a refusal, or nothing left until the reset.
pub(crate) fn wait(answer: &Response, now: Timestamp) -> Option<Duration> {
    let refused = matches!(answer.status, 429 | 503);
    refused.then(|| asked(answer, now)).flatten().or_else(|| spent(answer, now))
}

fn spent(answer: &Response, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| answer.header(name).and_then(first_number);
    if let Some((remaining, reset)) = answer.header("ratelimit").and_then(combined) {
        return if remaining <= 0.0 { until(reset, now) } else { None };
    }
    for prefix in ["ratelimit", "x-ratelimit", "x-rate-limit"] {
        let Some(remaining) = number(&format!("{prefix}-remaining")) else { continue };
        if remaining > 0.0 {
            return None;
        }
        return until(number(&format!("{prefix}-reset"))?, now);
    }
    None
}

/// `limit=10, remaining=0, reset=5`, or the later `"default";r=0;t=5`.
fn combined(text: &str) -> Option<(f64, f64)> {
    let value = |names: [&str; 2]| {
        let mut pairs = text.split([',', ';']).filter_map(|part| part.trim().split_once('='));
        pairs.find(|(name, _)| names.contains(&name.trim())).and_then(|(_, text)| first_number(text))
    };
    Some((value(["remaining", "r"])?, value(["reset", "t"])?))
}

/// `0`, and the `0` of `0, 0;window=60`.
fn first_number(text: &str) -> Option<f64> {
    let text = text.split([',', ';']).next()?.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

#[allow(clippy::cast_precision_loss)]
fn until(reset: f64, now: Timestamp) -> Option<Duration> {
    let now = now.0 as f64 / 1000.0;
    let seconds = if reset > EPOCH_MS {
        reset / 1000.0 - now
    } else if reset > EPOCH {
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

    fn said(status: u16, headers: &[(&str, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        wait(&Response { status, headers, body: vec![] }, NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn every_form_of_a_spent_limit_is_understood() {
        assert_eq!(said(200, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "7")]), Some(7));
        assert_eq!(said(200, &[("ratelimit-remaining", "0, 5;w=60"), ("ratelimit-reset", "7;w=60")]), Some(7));
        assert_eq!(said(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000009")]), Some(9));
        assert_eq!(said(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000009000")]), Some(9));
        assert_eq!(said(200, &[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "12")]), Some(12));
        assert_eq!(said(200, &[("ratelimit", "limit=10, remaining=0, reset=5")]), Some(5));
        assert_eq!(said(200, &[("ratelimit", "\"default\";r=0;t=5")]), Some(5));
        assert_eq!(said(200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000000")]), Some(0));
        assert_eq!(said(429, &[("retry-after", "3"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "7")]), Some(3));
        assert_eq!(said(503, &[("retry-after", "3")]), Some(3));
    }

    #[test]
    fn what_is_not_spent_or_not_readable_asks_for_nothing() {
        assert_eq!(said(200, &[]), None);
        assert_eq!(said(200, &[("retry-after", "3")]), None);
        assert_eq!(said(200, &[("ratelimit-remaining", "1"), ("ratelimit-reset", "7")]), None);
        assert_eq!(said(200, &[("ratelimit-remaining", "0")]), None);
        assert_eq!(said(200, &[("ratelimit", "\"default\";r=1;t=5")]), None);
        for bad in ["", "soon", "-1", "1e9", "NaN", "inf"] {
            assert_eq!(said(200, &[("ratelimit-remaining", "0"), ("ratelimit-reset", bad)]), None, "{bad}");
            assert_eq!(said(200, &[("ratelimit-remaining", bad), ("ratelimit-reset", "7")]), None, "{bad}");
        }
    }
}

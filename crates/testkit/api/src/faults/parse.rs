//! Parses the text of a fault: `kind[=value][;times=n][;key=name][;when=before|after]`.
//! Invariant: a text that cannot be parsed is refused, and the error names the wrong word.

use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};

use super::{Fault, FaultKind, FaultTime};

/// The longest pause: a minute. A longer pause is probably a typing error.
const MOST_MILLISECONDS: u64 = 60_000;
const MOST_BYTES: u64 = 1 << 30;
const MOST_DEPTH: u64 = 10_000_000;

const KINDS: &str = "status=<code>, slow=<ms>, late=<ms>, drip=<ms>, truncate[=<bytes>], close, wrong-type, not-json, deep[=<levels>], \
                     huge=<bytes>, gzip-bomb[=<bytes>], redirect=<url>, retry-after=<seconds>, rate=<per second>";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    #[error("no fault `{kind}`; there are {KINDS}")]
    UnknownKind { kind: String },
    #[error("`{name}` cannot be `{value}`")]
    BadValue { name: String, value: String },
    #[error("no option `{name}`; there are times, key, when, status")]
    UnknownOption { name: String },
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = split_pair(parts.next().unwrap_or_default());
        let kind = parse_kind(name, value)?;
        let time = if is_before_by_default(&kind) { FaultTime::BeforeHandler } else { FaultTime::AfterHandler };
        let mut fault = Fault { kind, times: None, key: None, time };
        for part in parts.filter(|part| !part.is_empty()) {
            parse_option(&mut fault, part)?;
        }
        Ok(fault)
    }
}

/// Returns whether a fault is before the handler unless `when` says otherwise.
fn is_before_by_default(kind: &FaultKind) -> bool {
    use FaultKind::*;
    matches!(kind, Status(_) | Slow(_) | Late(_) | Redirect(..) | RetryAfter(_) | Rate(_))
}

fn parse_option(fault: &mut Fault, part: &str) -> Result<(), FaultError> {
    let (name, value) = split_pair(part);
    match (name, value, &mut fault.kind) {
        ("times", Some(_), _) => fault.times = Some(parse_number(name, value, 1_000_000)?),
        ("key", Some(key), _) if !key.is_empty() => fault.key = Some(key.to_owned()),
        ("when", Some("before"), _) => fault.time = FaultTime::BeforeHandler,
        ("when", Some("after"), FaultKind::Late(_)) => return Err(bad_value(name, value)),
        ("when", Some("after"), _) => fault.time = FaultTime::AfterHandler,
        ("status", Some(_), FaultKind::Redirect(status, _)) => *status = parse_status(name, value)?,
        ("times" | "key" | "when" | "status", ..) => return Err(bad_value(name, value)),
        _ => return Err(FaultError::UnknownOption { name: name.to_owned() }),
    }
    Ok(())
}

fn parse_kind(name: &str, value: Option<&str>) -> Result<FaultKind, FaultError> {
    let number = |max| parse_number(name, value, max);
    let number_or = |default: u64, max| if value.is_none() { Ok(default) } else { number(max) };
    let milliseconds = || number(MOST_MILLISECONDS).map(Duration::from_millis);
    Ok(match name {
        "status" => FaultKind::Status(parse_status(name, value)?),
        "slow" => FaultKind::Slow(milliseconds()?),
        "late" => FaultKind::Late(milliseconds()?),
        "drip" => FaultKind::Drip(milliseconds()?),
        "truncate" => FaultKind::Truncate(number_or(64, MOST_BYTES)?.max(1)),
        "close" => FaultKind::Close,
        "wrong-type" => FaultKind::WrongType,
        "not-json" => FaultKind::NotJson,
        "deep" => FaultKind::Deep(number_or(100_000, MOST_DEPTH)?),
        "huge" => FaultKind::Huge(number(MOST_BYTES)?),
        "gzip-bomb" => FaultKind::GzipBomb(number_or(64 << 20, MOST_BYTES)?),
        "redirect" => FaultKind::Redirect(StatusCode::FOUND, parse_location(name, value)?),
        "retry-after" => FaultKind::RetryAfter(number(86_400)?),
        "rate" => FaultKind::Rate(number(1_000_000)?),
        _ => return Err(FaultError::UnknownKind { kind: name.to_owned() }),
    })
}

fn split_pair(part: &str) -> (&str, Option<&str>) {
    match part.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (part.trim(), None),
    }
}

fn parse_number(name: &str, value: Option<&str>, max: u64) -> Result<u64, FaultError> {
    value.and_then(|text| text.parse().ok()).filter(|number| *number <= max).ok_or_else(|| bad_value(name, value))
}

/// Parses the status of an answer. An informational status (1xx) is refused, because it does not end an exchange.
fn parse_status(name: &str, value: Option<&str>) -> Result<StatusCode, FaultError> {
    let status = value.and_then(|text| StatusCode::from_bytes(text.as_bytes()).ok());
    status.filter(|status| (200..600).contains(&status.as_u16())).ok_or_else(|| bad_value(name, value))
}

fn parse_location(name: &str, value: Option<&str>) -> Result<String, FaultError> {
    let sendable = value.filter(|url| !url.is_empty() && HeaderValue::from_str(url).is_ok());
    sendable.map(str::to_owned).ok_or_else(|| bad_value(name, value))
}

fn bad_value(name: &str, value: Option<&str>) -> FaultError {
    FaultError::BadValue { name: name.to_owned(), value: value.unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_a_kind_a_value_and_options() {
        let fault: Fault = "status=503; times=2; key=a b; when=after".parse().unwrap();
        assert_eq!(fault.kind, FaultKind::Status(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!((fault.times, fault.key.as_deref(), fault.time), (Some(2), Some("a b"), FaultTime::AfterHandler));
        let fault: Fault = "redirect=http://x/?a=b;status=307".parse().unwrap();
        assert_eq!(fault.kind, FaultKind::Redirect(StatusCode::TEMPORARY_REDIRECT, "http://x/?a=b".to_owned()));
        assert_eq!("close".parse::<Fault>().unwrap().time, FaultTime::AfterHandler);
    }

    #[test]
    fn a_fault_that_cannot_be_parsed_is_refused() {
        for text in
            ["", "nope", "status", "status=99", "status=abc", "slow", "slow=-1", "huge=99999999999", "redirect="]
        {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
        for text in ["close;times", "close;times=x", "close;when=never", "close;nope=1", "close;status=200"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}

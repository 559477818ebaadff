//! Reads `kind[=value][;times=n][;key=name][;when=before|after]`.
//! Invariant: what cannot be read is refused with the word that is wrong; it never means "no fault".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};

use super::{Fault, Kind, When};

/// A minute: nobody who asks for more means it, and a stopped server waits for no one that long.
const MOST_MILLISECONDS: u64 = 60_000;
const MOST_BYTES: u64 = 1 << 30;
const MOST_DEPTH: u64 = 10_000_000;

const KINDS: &str = "status=<code>, slow=<ms>, drip=<ms>, truncate[=<bytes>], close, wrong-type, not-json, deep[=<levels>], \
                     huge=<bytes>, gzip-bomb[=<bytes>], redirect=<url>, retry-after=<seconds>, rate=<per second>";

#[derive(Debug, PartialEq, Eq)]
pub enum FaultError {
    NoKind { kind: String },
    BadValue { name: String, value: String },
    NoOption { name: String },
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultError::NoKind { kind } => write!(f, "no fault `{kind}`; there are {KINDS}"),
            FaultError::BadValue { name, value } => write!(f, "`{name}` cannot be `{value}`"),
            FaultError::NoOption { name } => write!(f, "no option `{name}`; there are times, key, when, status"),
        }
    }
}

impl std::error::Error for FaultError {}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = pair(parts.next().unwrap_or_default());
        let kind = kind(name, value)?;
        let when = if refuses(&kind) { When::Before } else { When::After };
        let mut fault = Fault { kind, times: None, key: None, when };
        for part in parts.filter(|part| !part.is_empty()) {
            option(&mut fault, part)?;
        }
        Ok(fault)
    }
}

/// Whether it stands in front of the handler unless `when` says otherwise.
fn refuses(kind: &Kind) -> bool {
    matches!(kind, Kind::Status(_) | Kind::Slow(_) | Kind::Redirect(..) | Kind::RetryAfter(_) | Kind::Rate(_))
}

fn option(fault: &mut Fault, part: &str) -> Result<(), FaultError> {
    let (name, value) = pair(part);
    match (name, value, &mut fault.kind) {
        ("times", Some(_), _) => fault.times = Some(number((name, value), 1_000_000)?),
        ("key", Some(key), _) if !key.is_empty() => fault.key = Some(key.to_owned()),
        ("when", Some("before"), _) => fault.when = When::Before,
        ("when", Some("after"), _) => fault.when = When::After,
        ("status", Some(_), Kind::Redirect(status, _)) => *status = code((name, value))?,
        ("times" | "key" | "when" | "status", ..) => return Err(bad(name, value)),
        _ => return Err(FaultError::NoOption { name: name.to_owned() }),
    }
    Ok(())
}

fn kind(name: &str, value: Option<&str>) -> Result<Kind, FaultError> {
    let given = (name, value);
    let or = |default: u64, most| if value.is_none() { Ok(default) } else { number(given, most) };
    let milliseconds = || number(given, MOST_MILLISECONDS).map(Duration::from_millis);
    Ok(match name {
        "status" => Kind::Status(code(given)?),
        "slow" => Kind::Slow(milliseconds()?),
        "drip" => Kind::Drip(milliseconds()?),
        "truncate" => Kind::Truncate(or(64, MOST_BYTES)?.max(1)),
        "close" => Kind::Close,
        "wrong-type" => Kind::WrongType,
        "not-json" => Kind::NotJson,
        "deep" => Kind::Deep(or(100_000, MOST_DEPTH)?),
        "huge" => Kind::Huge(number(given, MOST_BYTES)?),
        "gzip-bomb" => Kind::GzipBomb(or(64 << 20, MOST_BYTES)?),
        "redirect" => Kind::Redirect(StatusCode::FOUND, location(given)?),
        "retry-after" => Kind::RetryAfter(number(given, 86_400)?),
        "rate" => Kind::Rate(number(given, 1_000_000)?),
        _ => return Err(FaultError::NoKind { kind: name.to_owned() }),
    })
}

fn pair(part: &str) -> (&str, Option<&str>) {
    match part.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (part.trim(), None),
    }
}

fn number((name, value): (&str, Option<&str>), most: u64) -> Result<u64, FaultError> {
    value.and_then(|text| text.parse().ok()).filter(|number| *number <= most).ok_or_else(|| bad(name, value))
}

/// A status that may come with a body: an informational one is no answer.
fn code((name, value): (&str, Option<&str>)) -> Result<StatusCode, FaultError> {
    let code = value.and_then(|text| StatusCode::from_bytes(text.as_bytes()).ok());
    code.filter(|code| (200..600).contains(&code.as_u16())).ok_or_else(|| bad(name, value))
}

fn location((name, value): (&str, Option<&str>)) -> Result<String, FaultError> {
    let sendable = value.filter(|url| !url.is_empty() && HeaderValue::from_str(url).is_ok());
    sendable.map(str::to_owned).ok_or_else(|| bad(name, value))
}

fn bad(name: &str, value: Option<&str>) -> FaultError {
    FaultError::BadValue { name: name.to_owned(), value: value.unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kind_value_and_options() {
        let fault: Fault = "status=503; times=2; key=a b; when=after".parse().unwrap();
        assert_eq!(fault.kind, Kind::Status(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!((fault.times, fault.key.as_deref(), fault.when), (Some(2), Some("a b"), When::After));
        let fault: Fault = "redirect=http://x/?a=b;status=307".parse().unwrap();
        assert_eq!(fault.kind, Kind::Redirect(StatusCode::TEMPORARY_REDIRECT, "http://x/?a=b".to_owned()));
        assert_eq!("close".parse::<Fault>().unwrap().when, When::After);
    }

    #[test]
    fn refuses_what_it_cannot_read() {
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

//! Dates and moments: the forms in which APIs write them, and the conversion between an API's form and the form in
//! rows.
//! Invariant: a row contains a moment as RFC 3339 text and a day as text such as `2026-11-15`. Numbers are used only
//! in requests and answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form in which an API writes a moment or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DateFormat {
    /// `2026-11-15T12:00:00Z`
    Rfc3339,
    /// `2026-11-15`
    IsoDate,
    /// The number of seconds since 1970, UTC.
    Unix,
    /// The number of milliseconds since 1970, UTC.
    UnixMs,
}

impl DateFormat {
    /// Returns whether a text is a valid value of this format in a row.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            DateFormat::IsoDate => is_date(text.as_bytes()),
            DateFormat::Rfc3339 | DateFormat::Unix | DateFormat::UnixMs => {
                let bytes = text.as_bytes();
                let has_separator = bytes.get(10).is_some_and(|b| matches!(b, b'T' | b't' | b' '));
                bytes.len() >= 20 && is_date(&bytes[..10]) && has_separator && is_time(&bytes[11..])
            }
        }
    }

    /// Converts a value of an answer to its form in a row. Returns `None` if no conversion is needed or if the value
    /// is no moment of this format.
    pub fn from_wire(self, value: &Value) -> Option<Value> {
        let number = || match value {
            Value::Number(n) => n.as_f64(),
            // Slack and other APIs send the number as a string.
            Value::String(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        let ms = match self {
            DateFormat::Rfc3339 => return value.as_str().and_then(add_colon_to_offset).map(Value::String),
            DateFormat::IsoDate => return None,
            DateFormat::Unix => number()? * 1000.0,
            DateFormat::UnixMs => number()?,
        };
        if !ms.is_finite() || ms.abs() >= 9e15 {
            return None;
        }
        let moment = Timestamp::from_millisecond(ms.round() as i64).ok()?;
        Some(Value::String(moment.to_string()))
    }

    /// Converts a value of a row to the form that the API takes. A day is sent as its first moment in UTC if the API
    /// takes a number. Returns `None` if the API takes a number and the text is no moment.
    pub fn to_wire(self, text: &str) -> Option<Value> {
        let moment = || -> Option<Timestamp> {
            let with_time = if is_date(text.as_bytes()) { format!("{text}T00:00:00Z") } else { text.to_owned() };
            with_time.parse().ok()
        };
        match self {
            DateFormat::Rfc3339 | DateFormat::IsoDate => Some(Value::String(text.to_owned())),
            DateFormat::Unix => Some(Value::from(moment()?.as_second())),
            DateFormat::UnixMs => Some(Value::from(moment()?.as_millisecond())),
        }
    }
}

/// Rewrites a moment with an offset such as `+0000` to the offset `+00:00`. Returns `None` for any other text. Jira
/// writes offsets without a colon, which RFC 3339 does not allow.
fn add_colon_to_offset(text: &str) -> Option<String> {
    let split = text.len().checked_sub(4).filter(|_| text.is_ascii())?;
    let before = text.get(..split)?;
    let offset = text.get(split..)?;
    let has_bare_offset = before.ends_with(['+', '-']) && offset.bytes().all(|b| b.is_ascii_digit());
    (has_bare_offset && DateFormat::Rfc3339.accepts(text)).then(|| format!("{before}{}:{}", &offset[..2], &offset[2..]))
}

/// Returns whether the text is a day of the calendar. The check is written by hand for speed, because it runs for
/// every date of every row. A test compares it with the parser of `jiff`.
fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return false;
    };
    if ![y1, y2, y3, y4, m1, m2, d1, d2].iter().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let century = parse_two_digits(y1, y2);
    let year_of_century = parse_two_digits(y3, y4);
    let is_leap_year = if year_of_century == 0 { century.is_multiple_of(4) } else { year_of_century.is_multiple_of(4) };
    let days = match parse_two_digits(m1, m2) {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&parse_two_digits(d1, d2))
}

/// Returns the number that two ASCII digits write. For other bytes the result is meaningless, but the function does
/// not panic.
fn parse_two_digits(tens: &u8, ones: &u8) -> u8 {
    tens.wrapping_sub(b'0').wrapping_mul(10).wrapping_add(ones.wrapping_sub(b'0'))
}

/// Returns whether the text is `HH:MM:SS`, an optional fraction, and `Z` or an offset.
fn is_time(text: &[u8]) -> bool {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else {
        return false;
    };
    if ![h1, h2, m1, m2, s1, s2].iter().all(|b| b.is_ascii_digit()) {
        return false;
    }
    // Second 60 is valid, because it is a leap second.
    if parse_two_digits(h1, h2) > 23 || parse_two_digits(m1, m2) > 59 || parse_two_digits(s1, s2) > 60 {
        return false;
    }
    let fraction_length =
        rest.strip_prefix(b".").map_or(0, |r| 1 + r.iter().take_while(|b| b.is_ascii_digit()).count());
    match &rest[fraction_length..] {
        b"Z" | b"z" => true,
        // Jira writes the offset without a colon.
        [b'+' | b'-', h1, h2, b':', m1, m2] | [b'+' | b'-', h1, h2, m1, m2] => {
            [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_existing_days_and_hours_are_accepted() {
        for day in ["2026-02-28", "2024-02-29", "2000-02-29", "2026-12-31"] {
            assert!(DateFormat::IsoDate.accepts(day), "{day}");
        }
        for day in ["2026-02-29", "1900-02-29", "2026-02-30", "2026-04-31", "2026-00-01", "2026-13-01", "2026-01-00"] {
            assert!(!DateFormat::IsoDate.accepts(day), "{day}");
            assert!(!DateFormat::Rfc3339.accepts(&format!("{day}T00:00:00Z")), "{day}");
        }
        for time in ["24:00:00", "23:60:00", "23:59:61"] {
            assert!(!DateFormat::Rfc3339.accepts(&format!("2026-01-01T{time}Z")), "{time}");
        }
    }

    #[test]
    fn the_accepted_days_are_those_of_the_calendar() {
        for year in [0, 1, 4, 100, 400, 1600, 1900, 1999, 2000, 2023, 2024, 2100, 9996, 9999] {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(is_date(text.as_bytes()), text.parse::<jiff::civil::Date>().is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_number_becomes_a_moment_and_is_sent_as_a_number() {
        let unix = DateFormat::Unix;
        assert_eq!(unix.from_wire(&json!(1_700_000_000)), Some(json!("2023-11-14T22:13:20Z")));
        assert_eq!(unix.from_wire(&json!("1700000000.5")), Some(json!("2023-11-14T22:13:20.5Z")));
        assert_eq!(
            DateFormat::UnixMs.from_wire(&json!(1_700_000_000_123_i64)),
            Some(json!("2023-11-14T22:13:20.123Z"))
        );
        let offset = DateFormat::Rfc3339.from_wire(&json!("2026-04-01T10:00:00.000+0200"));
        assert_eq!(offset, Some(json!("2026-04-01T10:00:00.000+02:00")), "as RFC 3339 writes it");
        for unchanged in ["2026-04-01T10:00:00Z", "2026-04-01", "é+0200", "+0200", ""] {
            assert_eq!(DateFormat::Rfc3339.from_wire(&json!(unchanged)), None, "{unchanged}");
        }
        assert_eq!(unix.from_wire(&json!(1e300)), None);
        assert_eq!(unix.from_wire(&json!([])), None);
        assert_eq!(unix.to_wire("2023-11-14T22:13:20Z"), Some(json!(1_700_000_000)));
        assert_eq!(unix.to_wire("2023-11-14"), Some(json!(1_699_920_000)));
        assert_eq!(DateFormat::UnixMs.to_wire("2023-11-14T23:13:20+01:00"), Some(json!(1_700_000_000_000_i64)));
        assert_eq!(unix.to_wire("yesterday"), None);
    }
}

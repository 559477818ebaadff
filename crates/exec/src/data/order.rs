//! Typed comparison: numbers by size, dates by instant, text by its characters.
//! Invariant: `compare` is a total order, so a sort with it never fails; each key is read from its row once.

use std::cmp::Ordering;

use catalog::{DateFormat, Type};
use jiff::Timestamp;
use serde_json::{Number, Value};

/// A value in the form in which it is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Key<'v> {
    Bool(bool),
    Int(i64),
    Number(&'v Number),
    /// Nanoseconds since 1970.
    Instant(i128),
    Text(&'v str),
    /// A value that has no order, only equality.
    Other(&'v Value),
}

/// Returns the key of a value. `None` for `null`, which has no place in the order.
pub fn key<'v>(kind: &Type, value: &'v Value) -> Option<Key<'v>> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => Key::Bool(*flag),
        Value::Number(number) => number.as_i64().map_or(Key::Number(number), Key::Int),
        Value::String(text) if matches!(kind, Type::Date(_)) => instant(text).map_or(Key::Text(text), Key::Instant),
        Value::String(text) => Key::Text(text),
        other => Key::Other(other),
    })
}

/// Compares two keys. Keys of different variants are ordered by variant, so the order is total.
pub fn compare(a: &Key<'_>, b: &Key<'_>) -> Ordering {
    match (a, b) {
        (Key::Int(a), Key::Int(b)) => a.cmp(b),
        (Key::Text(a), Key::Text(b)) => a.cmp(b),
        (Key::Instant(a), Key::Instant(b)) => a.cmp(b),
        (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
        (Key::Number(a), Key::Number(b)) => numbers(a, b),
        (Key::Int(a), Key::Number(b)) => numbers(&Number::from(*a), b),
        (Key::Number(a), Key::Int(b)) => numbers(a, &Number::from(*b)),
        (Key::Other(a), Key::Other(b)) if super::hash::same(a, b) => Ordering::Equal,
        (Key::Other(a), Key::Other(b)) => base::canonical(a).cmp(&base::canonical(b)),
        _ => sort_of(a).cmp(&sort_of(b)),
    }
}

/// Compares numbers exactly, even a whole number with a float that cannot represent it.
pub fn numbers(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => whole_and_float(a, b.as_f64().unwrap_or_default()),
        (None, Some(b)) => whole_and_float(b, a.as_f64().unwrap_or_default()).reverse(),
        (None, None) => {
            let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

/// Returns the number as an integer, if it is one.
pub fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Parses RFC 3339 with any offset. A date without time is its first moment in UTC.
pub fn instant(text: &str) -> Option<i128> {
    if let Some(fast) = utc_seconds(text.as_bytes()) {
        return Some(fast);
    }
    if DateFormat::IsoDate.accepts(text) {
        return format!("{text}T00:00:00Z").parse::<Timestamp>().ok().map(|t| t.as_nanosecond());
    }
    text.parse::<Timestamp>().ok().map(|t| t.as_nanosecond())
}

/// Parses `2026-11-15` and `2026-11-15T12:00:00Z`, the two most common forms, without the general parser.
fn utc_seconds(text: &[u8]) -> Option<i128> {
    let digits = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to)?.iter().try_fold(0i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let seconds = match text.len() {
        10 => 0,
        20 if text[10] == b'T' && text[13] == b':' && text[16] == b':' && text[19] == b'Z' => {
            let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
            (hour < 24 && minute < 60 && second < 60).then_some(())?;
            hour * 3600 + minute * 60 + second
        }
        _ => return None,
    };
    (text[4] == b'-' && text[7] == b'-').then_some(())?;
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    ((1..=12).contains(&month) && (1..=28).contains(&day)).then_some(())?;
    // Hinnant's days_from_civil, for years 0 to 9999. Only days up to 28 are accepted, because those exist in every
    // month.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(i128::from(days * 86_400 + seconds) * 1_000_000_000)
}

fn whole_and_float(whole: i128, float: f64) -> Ordering {
    // The cast saturates, which is correct: every whole number of JSON lies within i128.
    let floor = float.floor();
    whole.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal })
}

fn sort_of(key: &Key<'_>) -> u8 {
    match key {
        Key::Bool(_) => 0,
        Key::Int(_) | Key::Number(_) => 1,
        Key::Instant(_) => 2,
        Key::Text(_) => 3,
        Key::Other(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cmp(kind: &Type, a: Value, b: Value) -> Ordering {
        compare(&key(kind, &a).unwrap(), &key(kind, &b).unwrap())
    }

    #[test]
    fn dates_compare_by_instant_regardless_of_offset() {
        let time = Type::Date(DateFormat::Rfc3339);
        assert_eq!(cmp(&time, json!("2026-11-15T12:00:00Z"), json!("2026-11-15T14:00:00+02:00")), Ordering::Equal);
        assert_eq!(cmp(&time, json!("2026-11-15T12:00:00Z"), json!("2026-11-15T12:00:00.001Z")), Ordering::Less);
        assert_eq!(cmp(&time, json!("2026-11-15"), json!("2026-11-15T00:00:00Z")), Ordering::Equal);
        assert_eq!(cmp(&time, json!("2026-11-15T12:00:00+0200"), json!("2026-11-15T10:00:00Z")), Ordering::Equal);
    }

    #[test]
    fn the_fast_and_the_general_date_parser_agree() {
        for year in [0, 1, 1582, 1899, 1970, 2000, 2024, 2026, 2100, 9998] {
            for month in 1..=12 {
                for day in [1, 15, 28] {
                    let text = format!("{year:04}-{month:02}-{day:02}T13:07:59Z");
                    let slow = text.parse::<Timestamp>().unwrap().as_nanosecond();
                    assert_eq!(utc_seconds(text.as_bytes()), Some(slow), "{text}");
                }
            }
        }
        assert_eq!(instant("2024-02-29"), Some(1_709_164_800_000_000_000));
        assert_eq!(instant("2023-02-29"), None);
        assert_eq!(instant("yesterday"), None);
    }

    #[test]
    fn numbers_compare_exactly() {
        let number = Type::Number;
        let big = 9_007_199_254_740_993_i64;
        assert_eq!(cmp(&number, json!(big), json!(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(cmp(&number, json!(2), json!(2.5)), Ordering::Less);
        assert_eq!(cmp(&number, json!(-2), json!(-2.5)), Ordering::Greater);
        assert_eq!(cmp(&number, json!(u64::MAX), json!(1e30)), Ordering::Less);
        assert_eq!(cmp(&number, json!(1), json!(1.0)), Ordering::Equal);
    }
}

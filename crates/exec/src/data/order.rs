//! The order of JSON values by type: numbers by size, dates by instant, text by its characters.
//! Invariant: `compare` is a total order. The standard sort may panic with a comparison that is not total.

use std::cmp::Ordering;

use catalog::{DateFormat, Type};
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::number::compare_numbers;

/// A value in the form that `compare` takes. A date is parsed only once for its key, and not for every comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SortKey<'v> {
    Bool(bool),
    Int(i64),
    Number(&'v Number),
    /// Nanoseconds since 1970.
    Instant(i128),
    Text(&'v str),
    /// A list or an object. Such values are ordered part by part, only to make the order total.
    Other(&'v Value),
}

/// Returns the sort key of a value; `None` for `null`, which callers order themselves.
pub fn sort_key<'v>(kind: &Type, value: &'v Value) -> Option<SortKey<'v>> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => SortKey::Bool(*flag),
        Value::Number(number) => number.as_i64().map_or(SortKey::Number(number), SortKey::Int),
        Value::String(text) if matches!(kind, Type::Date(_)) => {
            instant(text).map_or(SortKey::Text(text), SortKey::Instant)
        }
        Value::String(text) => SortKey::Text(text),
        other => SortKey::Other(other),
    })
}

/// Compares two sort keys. Keys of different variants are ordered by variant, so that the order is total.
pub fn compare(a: &SortKey<'_>, b: &SortKey<'_>) -> Ordering {
    match (a, b) {
        (SortKey::Int(a), SortKey::Int(b)) => a.cmp(b),
        (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
        (SortKey::Instant(a), SortKey::Instant(b)) => a.cmp(b),
        (SortKey::Bool(a), SortKey::Bool(b)) => a.cmp(b),
        (SortKey::Number(a), SortKey::Number(b)) => compare_numbers(a, b),
        (SortKey::Int(a), SortKey::Number(b)) => compare_numbers(&Number::from(*a), b),
        (SortKey::Number(a), SortKey::Int(b)) => compare_numbers(a, &Number::from(*b)),
        (SortKey::Other(a), SortKey::Other(b)) => compare_json(a, b),
        _ => variant_rank(a).cmp(&variant_rank(b)),
    }
}

/// Compares two JSON values part by part. Their texts are no order: `[1]` and `[1.0]` are equal, and `[1.5]` is between their texts.
fn compare_json(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let parts = a.iter().zip(b).map(|(a, b)| compare_json(a, b));
            parts.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let (a, b) = (sorted_entries(a), sorted_entries(b));
            let parts = a.iter().zip(&b).map(|(a, b)| a.0.cmp(b.0).then_with(|| compare_json(a.1, b.1)));
            parts.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => type_rank(a).cmp(&type_rank(b)),
    }
}

fn sorted_entries(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    entries
}

fn type_rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Returns an RFC 3339 date as nanoseconds since 1970. A date without a time counts as midnight UTC.
pub fn instant(text: &str) -> Option<i128> {
    if let Some(nanoseconds) = parse_utc_date(text.as_bytes()) {
        return Some(nanoseconds);
    }
    if DateFormat::IsoDate.accepts(text) {
        return format!("{text}T00:00:00Z").parse::<Timestamp>().ok().map(|t| t.as_nanosecond());
    }
    text.parse::<Timestamp>().ok().map(|t| t.as_nanosecond())
}

/// Parses `2026-11-15` and `2026-11-15T12:00:00Z`, the two most common forms, without the general parser.
fn parse_utc_date(text: &[u8]) -> Option<i128> {
    let digits = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to)?.iter().try_fold(0i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let seconds = match text.len() {
        10 => 0,
        20 if text[10] == b'T' && text[13] == b':' && text[16] == b':' && text[19] == b'Z' => {
            let hour = digits(11, 13)?;
            let minute = digits(14, 16)?;
            let second = digits(17, 19)?;
            (hour < 24 && minute < 60 && second < 60).then_some(())?;
            hour * 3600 + minute * 60 + second
        }
        _ => return None,
    };
    (text[4] == b'-' && text[7] == b'-').then_some(())?;
    let year = digits(0, 4)?;
    let month = digits(5, 7)?;
    let day = digits(8, 10)?;
    ((1..=12).contains(&month) && (1..=28).contains(&day)).then_some(())?;
    // This is Hinnant's `days_from_civil` for years 0 to 9999. Only days up to 28 are accepted, because they exist in every
    // month; the general parser checks the others.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some(i128::from(days * 86_400 + seconds) * 1_000_000_000)
}

fn variant_rank(key: &SortKey<'_>) -> u8 {
    match key {
        SortKey::Bool(_) => 0,
        SortKey::Int(_) | SortKey::Number(_) => 1,
        SortKey::Instant(_) => 2,
        SortKey::Text(_) => 3,
        SortKey::Other(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compare_as(kind: &Type, a: Value, b: Value) -> Ordering {
        compare(&sort_key(kind, &a).unwrap(), &sort_key(kind, &b).unwrap())
    }

    #[test]
    fn dates_compare_by_instant_regardless_of_offset() {
        let time = Type::Date(DateFormat::Rfc3339);
        assert_eq!(
            compare_as(&time, json!("2026-11-15T12:00:00Z"), json!("2026-11-15T14:00:00+02:00")),
            Ordering::Equal
        );
        assert_eq!(compare_as(&time, json!("2026-11-15T12:00:00Z"), json!("2026-11-15T12:00:00.001Z")), Ordering::Less);
        assert_eq!(compare_as(&time, json!("2026-11-15"), json!("2026-11-15T00:00:00Z")), Ordering::Equal);
        assert_eq!(
            compare_as(&time, json!("2026-11-15T12:00:00+0200"), json!("2026-11-15T10:00:00Z")),
            Ordering::Equal
        );
    }

    #[test]
    fn lists_and_objects_have_a_total_order() {
        let values = [
            json!([]),
            json!([1]),
            json!([1.0]),
            json!([1.5]),
            json!([1, 2]),
            json!([2]),
            json!([null]),
            json!(["1"]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1.0}),
            json!({"a": 1.5}),
            json!({"b": 0, "a": 1}),
            json!({"a": 1, "b": 0}),
        ];
        for a in &values {
            for b in &values {
                let order = compare_json(a, b);
                assert_eq!(order, compare_json(b, a).reverse(), "{a} {b}");
                assert_eq!(order.is_eq(), crate::data::equality::is_equal(a, b), "{a} {b}");
                for c in &values {
                    if order.is_le() && compare_json(b, c).is_le() {
                        assert!(compare_json(a, c).is_le(), "{a} {b} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_fast_and_the_general_date_parser_agree() {
        for year in [0, 1, 1582, 1899, 1970, 2000, 2024, 2026, 2100, 9998] {
            for month in 1..=12 {
                for day in [1, 15, 28] {
                    let text = format!("{year:04}-{month:02}-{day:02}T13:07:59Z");
                    let slow = text.parse::<Timestamp>().unwrap().as_nanosecond();
                    assert_eq!(parse_utc_date(text.as_bytes()), Some(slow), "{text}");
                }
            }
        }
        assert_eq!(instant("2024-02-29"), Some(1_709_164_800_000_000_000));
        assert_eq!(instant("2023-02-29"), None);
        assert_eq!(instant("yesterday"), None);
    }
}

//! Checks date and time values: `now`, `today`, `now-7d`, and dates that are written where a time is expected.
//! Invariant: a moment is computed when the program is planned. No later step reads the clock.

use base::{Diagnostic, Edit, Span, Timestamp};
use catalog::{DateFormat, Type};
use serde_json::Value as Json;

use crate::check::Checker;
use crate::codes;
use crate::ir::Expr;

/// The milliseconds of one day.
const MILLISECONDS_PER_DAY: i64 = 86_400_000;
/// The moment 0001-01-01T00:00:00Z, in milliseconds since 1970.
const YEAR_1_START_MILLISECONDS: i64 = -62_135_596_800_000;
/// The moment 10000-01-01T00:00:00Z, in milliseconds since 1970.
const YEAR_10000_START_MILLISECONDS: i64 = 253_402_300_800_000;

impl Checker<'_> {
    /// Reads a bare word such as `now-7d` as a moment. Returns `None` if the word is not a moment or the slot takes
    /// none, and `Some(None)` if a mistake was reported.
    pub(super) fn read_moment(&mut self, kind: &Type, word: &str, span: Span) -> Option<Option<Expr>> {
        let (base, offset) = split_offset(word)?;
        let format = match kind {
            Type::Date(format) => *format,
            Type::Json => DateFormat::Rfc3339,
            // In a slot for text, `now` may be meant as text. A word with an offset is certainly a moment.
            Type::String(_) if !offset.is_empty() => DateFormat::Rfc3339,
            _ => return None,
        };
        let Some(shift) = parse_offset(offset) else {
            let message = format!("`{word}`: an offset is a number and s, min, h, d or w");
            self.report(
                Diagnostic::error(codes::WRONG_TYPE, span, message)
                    .with_fix([Edit::replace(span, format!("{base}-7d"))]),
            );
            return Some(None);
        };
        let now = self.scope.now.unwrap_or(Timestamp(0));
        let start = if base == "today" {
            now.0.div_euclid(MILLISECONDS_PER_DAY) * MILLISECONDS_PER_DAY
        } else {
            now.0.div_euclid(1000) * 1000
        };
        let Some(moment) = shift.and_then(|shift| start.checked_add(shift)).and_then(in_year_range) else {
            let message = format!("`{word}` is no date: it lies before the year 1 or after the year 9999");
            self.report_error(codes::WRONG_TYPE, span, message);
            return Some(None);
        };
        Some(Some(Json::String(format_moment(format, moment)).into()))
    }

    /// Checks a written date that does not have the wanted format. A day becomes the moment at which it begins. A
    /// moment where a day is wanted is an error, and the correction is its day.
    pub(super) fn convert_date(&mut self, format: DateFormat, written: &str, span: Span) -> Option<Expr> {
        let day = written.get(..10).filter(|day| DateFormat::IsoDate.accepts(day));
        match (format, day) {
            (DateFormat::IsoDate, Some(day)) => {
                let message = format!("expected a day, found {written}");
                self.report(
                    Diagnostic::error(codes::WRONG_TYPE, span, message)
                        .with_fix([Edit::replace(span, format!("\"{day}\""))]),
                );
                None
            }
            (_, Some(day)) => {
                let moment = match written.len() {
                    10 => format!("{day}T00:00:00Z"),
                    16 => format!("{written}:00Z"),
                    19 => format!("{written}Z"),
                    _ => String::new(),
                };
                if format.accepts(&moment) {
                    return Some(Json::String(moment).into());
                }
                self.report_no_date(format, written, span)
            }
            (_, None) => self.report_no_date(format, written, span),
        }
    }

    /// Reports a text that is not a date.
    fn report_no_date(&mut self, format: DateFormat, written: &str, span: Span) -> Option<Expr> {
        let what = match format {
            DateFormat::IsoDate => "a date such as \"2026-01-31\"",
            _ => "a moment such as \"2026-01-31T00:00:00Z\"",
        };
        let shown: String = written.chars().take(40).collect();
        let message = format!("expected {what}, found \"{shown}\"; `now`, `today` and `now-7d` are dates too");
        let fix = relative_date(written).map(|date| Edit::replace(span, date));
        self.report(Diagnostic::error(codes::WRONG_TYPE, span, message).with_fix(fix));
        None
    }
}

/// Returns the moment that an English phrase such as `yesterday` means.
fn relative_date(written: &str) -> Option<&'static str> {
    Some(match written.trim().to_lowercase().replace(['_', '-'], " ").as_str() {
        "yesterday" => "today-1d",
        "tomorrow" => "today+1d",
        "last week" | "a week ago" | "past week" => "now-7d",
        "next week" | "in a week" => "now+7d",
        "an hour ago" | "last hour" => "now-1h",
        "last month" | "a month ago" => "now-30d",
        _ => return None,
    })
}

/// Splits `now-7d` into `now` and `-7d`. Returns `None` if the word does not begin with `now` or `today`.
fn split_offset(word: &str) -> Option<(&'static str, &str)> {
    let (base, rest) = match word.strip_prefix("today") {
        Some(rest) => ("today", rest),
        None => ("now", word.strip_prefix("now")?),
    };
    (rest.is_empty() || rest.starts_with(['-', '+'])).then_some((base, rest))
}

/// Returns the moment if its year has at most four digits. Other years cannot be written in the date formats.
fn in_year_range(millis: i64) -> Option<Timestamp> {
    (YEAR_1_START_MILLISECONDS..YEAR_10000_START_MILLISECONDS).contains(&millis).then_some(Timestamp(millis))
}

/// Parses an offset such as `-7d` to milliseconds. Returns `None` for another text, and `Some(None)` if the number is
/// too large.
fn parse_offset(offset: &str) -> Option<Option<i64>> {
    if offset.is_empty() {
        return Some(Some(0));
    }
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let rest = offset.get(1..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = rest.split_at(digits);
    let unit = match unit {
        "s" | "sec" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => MILLISECONDS_PER_DAY,
        "w" => 7 * MILLISECONDS_PER_DAY,
        _ => return None,
    };
    if number.is_empty() {
        return None;
    }
    let milliseconds = |number: i64| number.checked_mul(unit)?.checked_mul(sign);
    Some(number.parse::<i64>().ok().and_then(milliseconds))
}

/// Formats a moment as a day, or as a time in whole seconds.
fn format_moment(format: DateFormat, moment: Timestamp) -> String {
    let full_text = moment.to_string();
    match format {
        DateFormat::IsoDate => full_text.get(..10).unwrap_or(&full_text).to_owned(),
        _ => format!("{}Z", full_text.get(..19).unwrap_or(&full_text)),
    }
}

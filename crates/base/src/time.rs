//! Timestamps: milliseconds since 1970 UTC, shown as RFC 3339.
//! Invariant: only `ports::Clock` returns the timestamp of the current moment.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment, as milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the timestamp `ms` milliseconds later, or the largest timestamp if the sum overflows.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(86_400_000);
        let ms = self.0.rem_euclid(86_400_000);
        let CalendarDate { year, month, day } = CalendarDate::from_days(days);
        let hour = ms / 3_600_000;
        let minute = ms / 60_000 % 60;
        let second = ms / 1000 % 60;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
    }
}

/// A date of the proleptic Gregorian calendar.
struct CalendarDate {
    year: i64,
    /// From 1 to 12.
    month: i64,
    /// The day of the month, from 1.
    day: i64,
}

impl CalendarDate {
    /// Converts days since 1970 to a date. The calculation uses eras of 400 years (146,097 days). A year in it starts on
    /// 1 March, so that a leap day is the last day of its year and shifts no other day.
    fn from_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn timestamps_are_shown_as_rfc_3339() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Timestamp(1_794_700_799_999).to_string(), "2026-11-14T23:59:59.999Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }
}

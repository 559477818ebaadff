//! Formats days and seconds since 1970-01-01 as the dates and instants of the demo API.
//! Invariant: no clock is read. The generated data always ends at `LAST_DAY`.

/// The number of seconds in a day.
pub const SECONDS_PER_DAY: u64 = 86_400;

/// The day 2026-03-31, in days since 1970-01-01. No generated item was created later, but a due date may be later.
pub const LAST_DAY: u64 = 20_543;

/// Formats a day since 1970-01-01 as a date such as `2026-03-31`.
pub fn date(day: u64) -> String {
    // This is the algorithm civil_from_days by Howard Hinnant. Its years start in March, so that the leap day is the last day of a year.
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats a second since 1970-01-01 as an instant such as `2026-03-31T09:14:05Z`.
pub fn instant(second: u64) -> String {
    let rest = second % SECONDS_PER_DAY;
    format!("{}T{:02}:{:02}:{:02}Z", date(second / SECONDS_PER_DAY), rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_are_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(19_783), "2024-03-01");
        assert_eq!(date(LAST_DAY), "2026-03-31");
    }

    #[test]
    fn an_instant_has_a_date_and_a_time() {
        assert_eq!(instant(1_000_000_000), "2001-09-09T01:46:40Z");
    }
}

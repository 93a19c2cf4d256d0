//! RFC 3339 time stamps in UTC with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time, e.g. `2026-01-31T12:00:00.000Z`.
#[must_use]
pub fn now_rfc3339() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    rfc3339(since.as_secs(), since.subsec_millis())
}

/// Formats a time given in seconds and milliseconds since 1970, e.g. `2026-01-31T12:00:00.000Z`.
#[must_use]
pub fn rfc3339(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Converts the number of days to year, month and day. Counting years from 1 March puts the leap
    // day at their end; the calendar repeats every 400 years.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_since_1970_are_formatted_as_rfc3339_dates() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_399, 999), "2000-02-28T23:59:59.999Z");
        assert_eq!(rfc3339(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_767_225_600, 0), "2026-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(4_107_542_399, 1), "2100-02-28T23:59:59.001Z");
    }
}

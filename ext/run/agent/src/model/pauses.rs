//! Pauses between the attempts of a request to the model.

use super::limits::Pace;
use reqwest::header::HeaderMap;
use std::time::{Duration, SystemTime};

/// Returns the pause that the provider requests in `retry-after-ms` or `retry-after` (seconds or a
/// date), at most `pace.max_retry_after`.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime, pace: &Pace) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? / unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let retry_after = text("retry-after-ms")
        .and_then(|text| number(text, 1000.0))
        .or_else(|| {
            let text = text("retry-after")?;
            number(text, 1.0).or_else(|| {
                let date = httpdate::parse_http_date(text).ok()?;
                Some(date.duration_since(now).unwrap_or_default())
            })
        })?;
    Some(retry_after.min(pace.max_retry_after))
}

/// Returns the pause before attempt number `next` (2 is the first retry). The pause doubles with
/// each attempt and is then reduced at random by up to half, so that clients which failed together
/// do not retry together.
pub(super) fn backoff(next: u32, jitter: u16, pace: &Pace) -> Duration {
    let doubled = pace
        .pause
        .saturating_mul(
            1_u32
                .checked_shl(next.saturating_sub(2))
                .unwrap_or(u32::MAX),
        )
        .min(pace.longest_pause);
    let half = doubled / 2;
    half + half.mul_f64(f64::from(jitter) / f64::from(u16::MAX))
}

/// Returns a random number for the pause, or a constant when the kernel provides none. The constant
/// is acceptable: the pause may be predictable.
pub(super) fn jitter() -> u16 {
    let mut bytes = [0x80_u8; 2];
    let _ = getrandom::fill(&mut bytes);
    u16::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        rows.iter()
            .map(|(name, value)| {
                let name = reqwest::header::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn pause_before_a_retry_follows_the_retry_after_header_up_to_a_maximum() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let pace = Pace::default();
        let retry_after = |rows| retry_after(&headers(rows), now, &pace);
        for (rows, milliseconds) in [
            (&[("retry-after", "7")][..], Some(7_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (
                &[("retry-after-ms", "250"), ("retry-after", "7")],
                Some(250),
            ),
            (
                &[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")],
                Some(10_000),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT")], Some(0)),
            (&[("retry-after", "86400")], Some(120_000)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ] {
            assert_eq!(
                retry_after(rows),
                milliseconds.map(Duration::from_millis),
                "{rows:?}"
            );
        }
    }

    /// The second argument of `backoff` is random: 0 gives half of the pause, `u16::MAX` the whole.
    #[test]
    fn retry_pauses_double_up_to_a_limit() {
        let pace = Pace::default();
        let most = |next| backoff(next, u16::MAX, &pace).as_millis();
        assert_eq!([2, 3, 4, 5].map(most), [1000, 2000, 4000, 8000]);
        assert_eq!(most(60), 30_000);
        assert_eq!(backoff(2, 0, &pace), Duration::from_millis(500));
    }
}

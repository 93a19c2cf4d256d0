//! Durations of flags. A unit is required: some commands used to read a bare number as
//! milliseconds and others as seconds.

use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::parse_duration;

/// Milliseconds of a duration such as `500ms`, `90s`, `15m`, `4h` or `1d`.
///
/// # Errors
/// `code`, with a sentence that begins with the flag.
pub(crate) fn read(code: ErrorCode, flag: &str, text: &str) -> Result<u64, ErrorBody> {
    parse_duration(text).ok_or_else(|| {
        let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        ErrorBody::new(
            code,
            if bare {
                format!(
                    "{flag} {text} has no unit: write {text}s (seconds) or {text}ms (milliseconds)"
                )
            } else {
                format!("{flag} {text:?} is not a duration such as 500ms, 90s, 15m, 4h or 1d")
            },
        )
    })
}

/// The same for a duration that must not be zero.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn positive(code: ErrorCode, flag: &str, text: &str) -> Result<u64, ErrorBody> {
    match read(code, flag, text)? {
        0 => Err(ErrorBody::new(
            code,
            format!("{flag} {text} is no time: it must be longer than zero"),
        )),
        milliseconds => Ok(milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("2s", 2000),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            let read = read(ErrorCode::LimitInvalid, "--timeout", text);
            assert_eq!(read.unwrap(), milliseconds, "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_both_readings() {
        for text in ["90", "0", "99999999999999999999"] {
            let error = read(ErrorCode::LimitInvalid, "--timeout", text).unwrap_err();
            assert_eq!(error.code, ErrorCode::LimitInvalid);
            assert_eq!(
                error.message,
                format!(
                    "--timeout {text} has no unit: write {text}s (seconds) or {text}ms (milliseconds)"
                )
            );
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "1.5s", "1w", "99999999999999999999s"] {
            assert!(
                read(ErrorCode::InputInvalid, "--ttl", text).is_err(),
                "{text}"
            );
        }
        assert!(positive(ErrorCode::InputInvalid, "--ttl", "0s").is_err());
        assert!(positive(ErrorCode::InputInvalid, "--ttl", "1ms").is_ok());
    }
}

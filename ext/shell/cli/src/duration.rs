//! Parses durations of flags. A unit is required, because the meaning of a bare number would differ
//! between commands (milliseconds or seconds).

use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Returns the milliseconds of a duration such as `500ms`, `90s`, `15m`, `4h` or `1d`.
///
/// # Errors
/// Fails with `code` and a message that starts with the flag.
pub fn read(code: ErrorCode, flag: &str, text: &str) -> Result<u64, ErrorBody> {
    let refused = |why: &str| {
        let message = format!("{flag} {text:?} is not a duration such as 90s, 15m or 4h: {why}");
        ErrorBody::new(code, message)
    };
    let time = humantime::parse_duration(text).map_err(|e| refused(&e.to_string()))?;
    u64::try_from(time.as_millis()).map_err(|_| refused("it is too long"))
}

/// Returns the milliseconds of a duration, or of a number without a unit, which is milliseconds as in
/// other implementations of recipes.
///
/// # Errors
/// The same as those of [`read`].
pub(crate) fn or_milliseconds(code: ErrorCode, flag: &str, text: &str) -> Result<u64, ErrorBody> {
    match text.parse() {
        Ok(milliseconds) => Ok(milliseconds),
        Err(_) => read(code, flag, text),
    }
}

/// Returns the milliseconds of a duration that must not be zero.
///
/// # Errors
/// The same as those of [`read`].
pub fn positive(code: ErrorCode, flag: &str, text: &str) -> Result<u64, ErrorBody> {
    match read(code, flag, text)? {
        0 => Err(ErrorBody::new(
            code,
            format!("{flag} {text} must be longer than zero"),
        )),
        milliseconds => Ok(milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_one_or_several_units_are_parsed() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("2s", 2000),
            ("007s", 7000),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("0s", 0),
            ("1.5s", 1500),
            ("1h 30min", 5_400_000),
            ("18446744073709551s", 18_446_744_073_709_551_000),
        ] {
            let read = read(ErrorCode::LimitInvalid, "--timeout", text);
            assert_eq!(read.unwrap(), milliseconds, "{text}");
        }
    }

    #[test]
    fn duration_of_a_recipe_without_unit_is_milliseconds() {
        let read = |text| or_milliseconds(ErrorCode::LimitInvalid, "--timeout", text);
        assert_eq!(read("1500").unwrap(), 1500);
        assert_eq!(read("2m").unwrap(), 120_000);
        assert!(read("-5").is_err() && read("soon").is_err());
    }

    #[test]
    fn duration_without_unit_and_invalid_duration_are_rejected() {
        for text in [
            "90",
            "99999999999999999999",
            "",
            "s",
            "-1s",
            "1x",
            "99999999999999999999s",
        ] {
            let error = read(ErrorCode::LimitInvalid, "--timeout", text).unwrap_err();
            assert_eq!(error.code, ErrorCode::LimitInvalid);
            assert!(
                error
                    .message
                    .starts_with(&format!("--timeout {text:?} is not"))
            );
        }
        let error = read(ErrorCode::LimitInvalid, "--timeout", "90").unwrap_err();
        assert!(
            error.message.ends_with("for example 90sec or 90ms"),
            "{error}"
        );
        assert!(positive(ErrorCode::InputInvalid, "--ttl", "0s").is_err());
        assert!(positive(ErrorCode::InputInvalid, "--ttl", "1ms").is_ok());
    }
}

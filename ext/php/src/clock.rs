//! The current time as text, formatted by PHP.

use crate::guard::Failure;
use std::ffi::{c_char, c_int};
use std::time::{SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Returns the current time in UTC as RFC 3339 with milliseconds.
pub(crate) fn now() -> Result<String, Failure> {
    let clock = || {
        ErrorBody::new(
            ErrorCode::Internal,
            "the system clock is set before 1970; set it to the current time",
        )
    };
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| clock())?;
    let seconds = i64::try_from(since.as_secs()).map_err(|_| clock())?;
    let text = format_utc(c"Y-m-d\\TH:i:s", seconds).ok_or_else(clock)?;
    Ok(format!("{text}.{:03}Z", since.subsec_millis()))
}

unsafe extern "C" {
    fn php_format_date(
        format: *const c_char,
        length: usize,
        moment: i64,
        local: c_int,
    ) -> *mut ext_php_rs::types::ZendStr;
}

fn format_utc(format: &std::ffi::CStr, moment: i64) -> Option<String> {
    // SAFETY: the format is NUL-terminated and its length excludes the NUL; the result is NULL or a
    // string owned by this box.
    let text = unsafe {
        let text = php_format_date(format.as_ptr(), format.count_bytes(), moment, 0);
        if text.is_null() {
            return None;
        }
        ext_php_rs::boxed::ZBox::from_raw(text)
    };
    text.as_str().ok().map(str::to_owned)
}

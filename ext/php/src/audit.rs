//! Reads pages of the audit log, and the arguments of searches in it.

use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use wp_codebox_artifacts::{
    AuditError, AuditLog, AuditOperations, AuditReading, AuditWindow, VerifiedLog,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum number of audit log records that one call returns.
pub(crate) const MAX_AUDIT_ENTRIES: i64 = 10_000;

/// Result of the last verification of an audit log, which further pages of the unchanged log reuse.
static VERIFIED: Mutex<VerifiedLog> = Mutex::new(VerifiedLog::new());

/// Reads a page of the log. Verifies the log unless this process did and the file is unchanged.
pub(crate) fn page(
    log: &AuditLog,
    window: AuditWindow,
    anchors: &Map<String, Value>,
) -> Result<AuditReading, AuditError> {
    let mut verified = VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    log.read_again(window, anchors, &mut verified, SystemTime::now())
}

/// Checks `before` and `limit` of `audit_of_operations`; 0 as `before` selects the newest records.
pub(crate) fn newest_before(before: i64, limit: i64) -> Result<(u64, usize), ErrorBody> {
    let whole = (u64::try_from(before), usize::try_from(limit));
    let (Ok(before), Ok(most), 1..=MAX_AUDIT_ENTRIES) = (whole.0, whole.1, limit) else {
        let message = format!(
            "\"before\" must be at least 0, and \"limit\" must be from 1 to {MAX_AUDIT_ENTRIES}"
        );
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    };
    Ok((if before == 0 { u64::MAX } else { before }, most))
}

/// Reads an object that gives the name of an operation for each name of an event.
pub(crate) fn operations(map: Map<String, Value>) -> Result<AuditOperations, ErrorBody> {
    let operations = map.into_iter().map(|(event, operation)| match operation {
        Value::String(operation) => Ok((event, operation)),
        _ => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "\"operations\" must give the name of an operation, a string, for each event",
        )),
    });
    operations.collect()
}

/// Converts `after` of `audit_records` to a range of records. 0 or more selects the records after
/// the record with that number; a negative value -N selects the N newest records.
pub(crate) fn window(after: i64, limit: i64) -> Result<AuditWindow, ErrorBody> {
    let refused = || {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            format!(
                "\"limit\" must be from 0 to {MAX_AUDIT_ENTRIES}, and \"after\" must be at least -{MAX_AUDIT_ENTRIES}"
            ),
        )
    };
    if !(0..=MAX_AUDIT_ENTRIES).contains(&limit) || after < -MAX_AUDIT_ENTRIES {
        return Err(refused());
    }
    let limit = usize::try_from(limit).map_err(|_| refused())?;
    match u64::try_from(after) {
        Ok(seq) => Ok(AuditWindow::After { seq, limit }),
        Err(_) => {
            let newest = usize::try_from(after.unsigned_abs()).map_err(|_| refused())?;
            Ok(AuditWindow::Newest(newest.min(limit)))
        }
    }
}

//! Checks the optional member `cases` of the manifest. Bundles written by this crate have none.

use super::files::Session;
use super::shape::{digest, text};
use crate::json::Json;
use std::collections::BTreeSet;
use wp_codebox_contracts::ViolationCode;

pub(super) fn check(session: &mut Session<'_>) {
    let cases = session.manifest.get("cases").and_then(Json::as_array);
    let cases = cases.unwrap_or_default().to_vec();
    let mut ids = BTreeSet::new();
    for (index, case) in cases.iter().enumerate() {
        let at = format!("manifest.cases[{index}]");
        let shape = ViolationCode::InvalidManifestShape;
        if !ids.insert(text(case, "id").unwrap_or_default().to_owned()) {
            session.add(shape, format!("{at}.id"), None, "a case id occurs twice");
        }
        let time = case.get("verification").and_then(|v| text(v, "verifiedAt"));
        if time.is_some_and(|time| !is_date(time)) {
            let field = format!("{at}.verification.verifiedAt");
            session.add(shape, field, None, "verifiedAt must be an ISO 8601 date");
        }
        let rows = case.get("artifacts").and_then(Json::as_array);
        for (position, row) in rows.unwrap_or_default().iter().enumerate() {
            let at = format!("{at}.artifacts[{position}]");
            let path = text(row, "path").unwrap_or_default();
            if session.check_reference(&format!("{at}.path"), path)
                && let Some(stated) = digest(row.get("sha256"))
            {
                check_hash(session, &format!("{at}.sha256"), path, stated);
            }
            if let Some(url) = text(row, "publicUrl") {
                session.check_url(&format!("{at}.publicUrl"), path, url);
            }
        }
    }
}

fn check_hash(session: &mut Session<'_>, field: &str, path: &str, stated: &str) {
    let (code, message) = match session.file_hash(path) {
        Some(hash) if hash.as_str() == stated => return,
        Some(_) => (
            ViolationCode::FileHashMismatch,
            "does not have the hash that the case states for it",
        ),
        None => (ViolationCode::MissingFile, "cannot be read"),
    };
    session.add(code, field, Some(path), format!("{path:?} {message}"));
}

/// Returns whether the text is `YYYY-MM-DD`, optionally with a time and an offset.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>, max: u32| {
        text.get(range)
            .filter(|t| t.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|t| t.parse::<u32>().ok())
            .is_some_and(|n| n <= max)
    };
    let at = |index: usize, byte: u8| bytes.get(index) == Some(&byte);
    let date = number(0..4, 9999)
        && at(4, b'-')
        && number(5..7, 12)
        && at(7, b'-')
        && number(8..10, 31)
        && &text[5..7] != "00"
        && &text[8..10] != "00";
    if !date || bytes.len() == 10 {
        return date;
    }
    let time = at(10, b'T') && number(11..13, 24) && at(13, b':') && number(14..16, 59);
    if !time {
        return false;
    }
    let rest = match text.get(16..) {
        Some(rest) if rest.starts_with(':') => {
            if !number(17..19, 59) {
                return false;
            }
            text.get(19..).unwrap_or_default()
        }
        rest => rest.unwrap_or_default(),
    };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let end = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if end == 0 {
                return false;
            }
            &fraction[end..]
        }
        None => rest,
    };
    let offset = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        parts.len() == 2
            && parts
                .iter()
                .all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(rest, "" | "Z") || rest.strip_prefix(['+', '-']).is_some_and(offset)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_accepted_only_in_iso_8601_form() {
        for good in [
            "2026-01-01",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00.000Z",
            "2026-12-31T23:59:59+02:00",
        ] {
            assert!(super::is_date(good), "{good}");
        }
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-01-00",
            "2026-01-01 00:00",
            "2026-01-01T",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+2",
        ] {
            assert!(!super::is_date(bad), "{bad}");
        }
    }
}

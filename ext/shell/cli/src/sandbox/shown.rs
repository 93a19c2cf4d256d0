//! Formats the output documents of `sandbox` as human-readable lines.

use serde_json::Value;
use wp_codebox_contracts::schema_id;
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_runtime::now_rfc3339;

/// Formats the causes of what a list omits.
fn unreadable(document: &Value) -> impl Iterator<Item = String> {
    let errors = document["unreadable"].as_array().into_iter().flatten();
    errors.map(|error| format!("Error: {}", text(error, "message")))
}

/// Formats `sandbox/v1` or another output document of `sandbox` as human-readable lines.
pub(super) fn lines(document: &Value) -> Vec<String> {
    if let Some(rows) = document["sandboxes"].as_array() {
        let head = format!("{SANDBOX:<36}  {:<12}  {PROFILE}", "STATE");
        let mut lines = vec![head];
        lines.extend(rows.iter().map(one_line));
        lines.extend(unreadable(document));
        return lines;
    }
    if let Some(rows) = document["snapshots"].as_array() {
        let head = format!(
            "{:<37}  {:<24}  {:>9}  NAME, {SANDBOX}",
            "SNAPSHOT", "MADE", "SIZE"
        );
        let mut lines = vec![head];
        lines.extend(rows.iter().map(|row| {
            let (id, at, size) = (text(row, "id"), text(row, "created_at"), size(row));
            let name = plain_line(&text(row, "name"));
            format!(
                "{id:<37}  {at:<24}  {size:>9}  {name}, {}",
                text(row, "run_id")
            )
        }));
        let damaged = document["damaged"].as_array().into_iter().flatten();
        lines.extend(damaged.map(|id| {
            format!(
                "{}  damaged; remove-snapshot removes it",
                id.as_str().unwrap_or_default()
            )
        }));
        lines.extend(unreadable(document));
        return lines;
    }
    match document["schema"].as_str() {
        Some(schema_id::SANDBOX) => sandbox(document),
        Some(schema_id::SANDBOX_SNAPSHOT) => snapshot(document),
        Some(schema_id::PREVIEW) => preview(document),
        _ => {
            let members = document.as_object().into_iter().flatten();
            members
                .filter(|(name, value)| !value.is_null() && *name != "schema" && *name != "success")
                .map(|(name, _)| format!("{name}: {}", text(document, name)))
                .collect()
        }
    }
}

const SANDBOX: &str = "SANDBOX";
const PROFILE: &str = "PROFILE";

fn text(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Formats the `total_bytes` of a row, for example as `1.5 MiB`.
fn size(row: &Value) -> String {
    let bytes = row["total_bytes"].as_u64().unwrap_or_default();
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

fn one_line(row: &Value) -> String {
    let identity = &row["identity"];
    format!(
        "{:<36}  {:<12}  {}@{}",
        text(row, "id"),
        text(row, "state"),
        text(identity, "profile"),
        text(identity, "version"),
    )
}

fn sandbox(document: &Value) -> Vec<String> {
    let mut lines = vec![one_line(document)];
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<10} {}", plain_line(&value)));
        }
    };
    add("isolation", text(document, "isolation"));
    add("network", text(document, "network"));
    add("preview", text(&document["preview"], "url"));
    for row in document["executions"].as_array().into_iter().flatten() {
        let (id, by) = (text(row, "id"), text(row, "actor"));
        add("runs", format!("{} ({id}, by {by})", text(row, "program")));
    }
    let expires = text(document, "expiresAt");
    let left = left(&expires, &now_rfc3339());
    add(
        "expires",
        left.map_or(expires.clone(), |left| format!("{expires} ({left})")),
    );
    let told = &document["tombstone"];
    if told.is_object() {
        let (how, by) = (text(told, "how"), text(told, "actor"));
        add(
            "ended",
            format!("{} ({how} by {by})", text(told, "endedAt")),
        );
        add("reason", text(told, "reason"));
    }
    add("bundle", text(document, "bundleId"));
    lines
}

fn preview(document: &Value) -> Vec<String> {
    let link = match text(document, "accessUrl") {
        link if link.is_empty() => text(document, "url"),
        link => link,
    };
    let mut lines = vec![format!("{link} until {}", text(document, "expiresAt"))];
    let login = text(document, "loginUrl");
    if !login.is_empty() {
        lines.push(format!("login, works once: {login}"));
    }
    lines
}

fn snapshot(document: &Value) -> Vec<String> {
    let (id, run) = (text(document, "id"), text(document, "run_id"));
    vec![
        format!("{id}  {}", plain_line(&text(document, "name"))),
        format!(
            "  {} of {run}, made {}",
            size(document),
            text(document, "created_at")
        ),
        format!("  wp-codebox sandbox restore {run} {id}"),
    ]
}

/// Returns the time from `now` to `until`, for example `in 29 min`; `None` if the times are in
/// different months or `until` has passed.
fn left(until: &str, now: &str) -> Option<String> {
    let seconds = |text: &str| -> Option<u64> {
        let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
        let (days, hours) = (part(8..10)?, part(11..13)?);
        Some(((days * 24 + hours) * 60 + part(14..16)?) * 60 + part(17..19)?)
    };
    // Below, days are subtracted, which is wrong across the end of a month.
    if until.get(..7)? != now.get(..7)? {
        return None;
    }
    match seconds(until)?.checked_sub(seconds(now)?)? {
        left @ 0..120 => Some(format!("in {left} s")),
        left @ 120..7200 => Some(format!("in {} min", left / 60)),
        left => Some(format!("in {} h", left / 3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_about_snapshots_and_a_sandbox_have_their_fields_and_no_control_characters() {
        let kept = json!({
            "schema": "wp-codebox/sandbox-snapshot/v1", "id": "snap_1", "name": "a\u{1b}[2Jb",
            "run_id": "run_1", "total_bytes": 1_600_000, "created_at": "t",
        });
        let told = lines(&kept).join("\n");
        assert!(told.contains("a[2Jb") && told.contains("1.5 MiB"), "{told}");
        assert!(told.contains("sandbox restore run_1 snap_1"), "{told}");
        let listed = lines(&json!({"snapshots": [kept], "damaged": ["snap_2"]}));
        assert!(
            listed[0].starts_with("SNAPSHOT") && listed.len() == 3,
            "{listed:?}"
        );
        assert!(!listed.concat().contains('\u{1b}'));
        let held = lines(&json!({
            "schema": "wp-codebox/sandbox/v1", "id": "run_1", "state": "active", "isolation": "full",
            "network": "deny", "preview": {"url": "http://127.0.0.1:1/"}, "expiresAt": "e",
            "executions": [{"id": "exec-1", "program": "sleep", "actor": "me"}],
        }));
        for part in [
            "full",
            "deny",
            "http://127.0.0.1:1/",
            "sleep (exec-1, by me)",
        ] {
            assert!(
                held.iter().any(|line| line.contains(part)),
                "{part}: {held:?}"
            );
        }
        let at = |minute: &str| format!("2026-11-22T16:{minute}.000Z");
        assert_eq!(
            left(&at("30:05"), &at("00:59")).as_deref(),
            Some("in 29 min")
        );
        assert_eq!(left(&at("01:05"), &at("00:59")).as_deref(), Some("in 6 s"));
        assert_eq!(left(&at("00:05"), &at("00:59")), None);
        assert_eq!(left("e", &at("00:59")), None);
    }
}

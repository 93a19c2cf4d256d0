//! Runs `<supervisor> gc --json` for one site.

use crate::doctor::{Bounds, ask, expect};
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::Settings;
use serde_json::{Map, Value};
use std::time::Duration;
use wp_codebox_contracts::{ErrorCode, SiteId, schema_id};

/// Time limit of the garbage collection: long, because it may have many files to delete.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Returns the report of the supervisor, `wp-codebox/gc/v1`, or its error.
pub(crate) fn run(
    settings: &Settings,
    site: &SiteId,
    options: Map<String, Value>,
) -> Result<Value, Failure> {
    const KNOWN: &[&str] = &[
        "max_age_seconds",
        "max_bytes",
        "artifacts_max_age_seconds",
        "dry_run",
    ];
    let mut fields = Fields::new(options, "", KNOWN, ErrorCode::InputInvalid)?;
    let mut arguments: Vec<String> = ["gc", "--json", "--state", &settings.state_dir]
        .map(str::to_owned)
        .into();
    arguments.push(format!("--site={site}"));
    for (name, flag, unit) in [
        ("max_age_seconds", "--max-age", "s"),
        ("max_bytes", "--max-bytes", ""),
        ("artifacts_max_age_seconds", "--artifacts-max-age", "s"),
    ] {
        if let Some(number) = fields.count(name)? {
            arguments.push(format!("{flag}={number}{unit}"));
        }
    }
    if fields.flag("dry_run")? {
        arguments.push("--dry-run".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let bounds = Bounds {
        timeout: TIMEOUT,
        ..Bounds::default()
    };
    expect(ask(settings, &arguments, bounds)?, schema_id::GC, "gc")
}

//! Lists the agent presets (files that describe how to install and start a coding agent) of the
//! installation, so that a user interface can offer them.

use crate::ini::Settings;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use wp_codebox_policy::{MAX_PRESETS, PRESET_BYTES, check_preset_name, parse_preset};

/// Returns every readable preset, sorted by name. A broken preset is left out; the supervisor reports
/// its error when a run requests it.
pub(crate) fn list(settings: &Settings) -> Vec<Value> {
    let directory = Path::new(&settings.share_dir).join("agents");
    let mut rows: Vec<(String, Value)> = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?.strip_suffix(".json")?.to_owned();
            check_preset_name(&name).ok()?;
            let row = row(settings, &directory, &name)?;
            Some((name, row))
        })
        .take(MAX_PRESETS)
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(settings: &Settings, directory: &Path, name: &str) -> Option<Value> {
    let file = std::fs::File::open(directory.join(format!("{name}.json"))).ok()?;
    let mut bytes = Vec::new();
    let most = u64::try_from(PRESET_BYTES).ok()? + 1;
    file.take(most).read_to_end(&mut bytes).ok()?;
    let preset = parse_preset(name, &bytes).ok()?;
    let place = Path::new(&settings.agents_dir).join(name);
    // PHP's user may be unable to see an installed program; the supervisor makes the final check.
    let installed = !settings.agents_dir.is_empty() && place.join(&preset.program).is_file();
    Some(json!({
        "name": preset.name,
        "title": preset.title,
        "about": preset.about,
        "apis": preset.apis,
        "license": preset.license,
        "homepage": preset.homepage,
        "install": preset.install.replace("{directory}", &place.display().to_string()),
        "network": preset.network,
        "installed": installed,
    }))
}

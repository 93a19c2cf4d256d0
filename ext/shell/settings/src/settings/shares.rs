//! Settings for runs of other users through a service that root started.

use super::file::ConfigFile;
use super::source::{Chosen, Origin, Setting, chosen};
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ErrorCode, LimitsRequest};
use wp_codebox_supervisor::HostShares;

/// Returns the rows of these settings.
///
/// # Errors
/// `wp_codebox_config_invalid` if a value is not a number from 1.
pub(super) fn chosen_shares(file: &ConfigFile) -> Result<[Chosen; 2], ErrorBody> {
    let row = |setting, default: u32| {
        chosen(setting, None, file, &|| {
            Some((PathBuf::from(default.to_string()), Origin::Default))
        })
    };
    let host = row(Setting::MaxRuns, HostShares::MAX_RUNS);
    let user = row(Setting::UserMaxRuns, HostShares::half(number(&host)?));
    number(&user)?;
    Ok([host, user])
}

/// Returns the value of a row as a number.
fn number(row: &Chosen) -> Result<u32, ErrorBody> {
    let text = row.value.as_deref().and_then(|value| value.to_str());
    let number = text.and_then(|text| text.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| {
        let name = row.setting.names().key;
        let text = text.unwrap_or_default();
        ErrorBody::new(
            ErrorCode::ConfigInvalid,
            format!("the setting \"{name}\" is {text:?}, but must be a whole number from 1"),
        )
    })
}

/// Returns what users other than root may have of this host, from the rows of the settings.
pub(super) fn host_shares(
    rows: &[Chosen],
    max_limits: &LimitsRequest,
) -> Result<HostShares, ErrorBody> {
    let of = |setting| {
        let row = rows.iter().find(|row| row.setting == setting);
        row.map_or(Ok(HostShares::MAX_RUNS), number)
    };
    Ok(HostShares {
        max_runs: of(Setting::MaxRuns)?,
        user_max_runs: of(Setting::UserMaxRuns)?,
        max_limits: max_limits.clone(),
    })
}

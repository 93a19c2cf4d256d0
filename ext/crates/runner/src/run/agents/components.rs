//! Components: loaded and probed before the agent, in every guest of the run.

use super::super::Setting;
use super::super::recorder::Recorder;
use super::super::work::Stop;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_runtime::Runtime;

/// Activates and probes what the request names. A stop is what the run comes to.
pub(in super::super) fn load(
    _setting: &Setting<'_>,
    _recorder: &mut Recorder<'_>,
    _runtime: &mut dyn Runtime,
) -> Result<Option<Stop>, ErrorBody> {
    Ok(None)
}

//! `wp-codebox sandbox estimate-cost`.

use super::args::EstimateArgs;
use super::place::Place;
use crate::duration;
use serde_json::Value;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_sandboxes::{check_duration, estimate, load_profile};
use wp_codebox_settings::Settings;

/// Estimates as `sandbox estimate-cost` asks.
pub(super) fn command(args: &EstimateArgs) -> Result<Value, ErrorBody> {
    let settings = Settings::resolve(&args.place.paths)?;
    let profile = load_profile(&args.profile, &settings.state_dir)?.profile;
    let wall_ms = match &args.duration {
        None => profile.ttl.default_ms,
        Some(text) => duration::positive(ErrorCode::InputInvalid, "--duration", text)?,
    };
    // Check before opening the state directory, so that wrong arguments are reported first.
    check_duration(&profile, wall_ms)?;
    let place = Place::open(&args.place)?;
    estimate(place.sandboxes(), &profile, wall_ms)
}

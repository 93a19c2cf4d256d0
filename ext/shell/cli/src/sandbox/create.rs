//! `wp-codebox sandbox create`.

use super::args::CreateArgs;
use super::place::site;
use crate::duration;
use crate::output::Output;
use crate::request::environment;
use serde_json::Value;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunMode};
use wp_codebox_control::new_run_id;
use wp_codebox_runs::supervisor::Spawned;
use wp_codebox_sandboxes::{
    LoadedProfile, PreviewAccess, SecretSource, Seed, Wanted, check_route, load_profile,
};
use wp_codebox_settings::Settings;

pub(super) fn create(args: &CreateArgs, output: Output) -> Result<Value, ErrorBody> {
    let settings = Settings::for_guests(&args.place.paths, None, output)?;
    let LoadedProfile { profile, text } = load_profile(&args.profile, &settings.state_dir)?;
    // Check here, and not in `validate`, whether the profile permits this host: the service
    // (`wp-codebox serve`) has already chosen the host when it calls `validate`.
    check_route(&profile)?;
    let ttl_ms = match &args.ttl {
        None => profile.ttl.default_ms,
        Some(text) => duration::positive(ErrorCode::InputInvalid, "--ttl", text)?,
    };
    let seed = Seed {
        profile: text,
        source: match &args.source {
            None => None,
            Some(source) => Some(absolute(source)?),
        },
        snapshot: args.from_snapshot.clone(),
        services: args.services.services(),
        ttl_ms,
        scope: args.scope.map_or(profile.scope_default, Into::into),
        actor: args.place.actor.clone(),
        instead_of: None,
        instructions_ref: None,
        secret_refs: None,
    };
    let wanted = Wanted {
        run_id: new_run_id()?,
        site: site(&args.place)?,
        seed,
        max_runs: None,
        preview: PreviewAccess::Machine,
    };
    let valid = wanted.validate(&settings, &SecretSource::Environment(environment))?;
    valid.make(Spawned::new(RunMode::Detached)?)
}

fn absolute(path: &str) -> Result<String, ErrorBody> {
    let invalid = |why: String| ErrorBody::new(ErrorCode::MountSourceInvalid, why);
    let path = std::path::absolute(path).map_err(|e| invalid(format!("--source {path:?}: {e}")))?;
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| invalid("--source is not valid UTF-8".to_owned()))
}

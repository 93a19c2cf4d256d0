//! Checks the task of a client of the service, and applies the bounds of its profile to it.
//!
//! A run gets no more than a sandbox of the same profile: its network, isolation level, directory
//! and limits are those of the profile, and the task can only lower the limits. A run without a
//! profile has the limits of [`CEILING`].

use super::source_roots::SourceRoots;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wp_codebox_cli::groups::{TaskArgs, run_request};
use wp_codebox_cli::guest_args::StoreArgs;
use wp_codebox_cli::placement::PlacementArgs;
use wp_codebox_contracts::{
    AboveCeiling, ErrorBody, ErrorCode, LimitsRequest, MountRequest, RunId, RunMode, RunRequest,
    SiteId,
};
use wp_codebox_policy::{defaults, normalise_task};
use wp_codebox_recipe::Profile;
use wp_codebox_sandboxes::{LONGEST, check_route, parsed_profile};
use wp_codebox_service::{Requester, RunOrder};
use wp_codebox_settings::Settings;

const MIB: u64 = 1024 * 1024;
/// Highest limits of a run without a profile that a client with a token starts.
const CEILING: LimitsRequest = LimitsRequest {
    wall_clock_ms: Some(3600 * 1000),
    processes: Some(512),
    memory_bytes: Some(2048 * MIB),
    disk_bytes: Some(2048 * MIB),
    output_bytes: Some(32 * MIB),
    cpu_milli: None,
};
/// Fields of a task that the service refuses, each with the reason. A client of the service is not
/// the operator of this machine, as a user of the command line is.
const REFUSED: &[(&str, &str)] = &[
    (
        "secret_env",
        "it names variables of the service's own environment; use a sandbox with a profile that has setup.secret_refs",
    ),
    (
        "base_url",
        "the service itself would connect to it; name an agent whose preset has its own model",
    ),
    ("model", "the service has no models; name an agent"),
];
/// Fields that only the administrator of the machine may set.
const ADMINISTRATOR_ONLY: &[(&str, &str)] = &[
    (
        "mounts",
        "they are directories of the host; use a profile with a workspace",
    ),
    (
        "site_seeds",
        "they read the site of the service; leave them out",
    ),
];
/// Fields that the profile of a run decides.
const PROFILE_DECIDES: &[&str] = &["policy", "network", "placement"];

/// Checks the task of an order and returns the request for its run. `max_runs` bounds the runs and
/// sandboxes of the site together.
pub(super) fn request(
    order: &RunOrder,
    settings: &Settings,
    site: &SiteId,
    roots: &SourceRoots,
    max_runs: u32,
) -> Result<RunRequest, ErrorBody> {
    let profile = match &order.profile {
        None => None,
        Some(document) => {
            let loaded = parsed_profile(document.text.as_bytes(), &document.id)?;
            check_route(&loaded.profile)?;
            Some(loaded.profile)
        }
    };
    let mut task = allowed(order, roots)?;
    if let Some(profile) = &profile {
        apply(profile, &mut task);
    }
    let args = TaskArgs {
        input_file: PathBuf::from("-"),
        result_file: None,
        artifacts: None,
        model_key_env: None,
        model_api: None,
        max_runs,
        placement: PlacementArgs::default(),
        store: StoreArgs {
            site: site.as_str().to_owned(),
            ..StoreArgs::default()
        },
    };
    let mut request = run_request(&task, &args, settings)?;
    request.run_id = RunId::new(order.run.as_str())
        .map_err(|e| invalid(format!("this is not the id of a run: {e}")))?;
    request.mode = RunMode::Detached;
    let earlier = request.follow_up.as_ref().map(|follow_up| &follow_up.of);
    if earlier.is_some_and(|of| of.artifact_id.is_some() && of.run_id.is_some()) {
        return Err(invalid(
            "follow_up_of names an artifact and a run; give only artifact_id or only run_id",
        ));
    }
    let requester = json!(order.actor.to_string());
    request.provenance.insert("requester".to_owned(), requester);
    if let Some(profile) = &profile {
        if request.mounts.is_empty() {
            request.mounts.extend(workspace(profile));
        }
        request.provenance.insert(
            "profile".to_owned(),
            json!({"id": profile.id, "version": profile.version, "sha256": profile.sha256}),
        );
    }
    match (&profile, order.requester) {
        (Some(profile), _) => bound(
            &mut request.limits,
            &of_profile(profile)?,
            "the profile allows",
        )?,
        (None, Requester::Token) => bound(
            &mut request.limits,
            &CEILING,
            "a run without a profile may have",
        )?,
        (None, Requester::Administrator) => {}
    }
    Ok(request)
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Returns the normalised task if the client may set all of its fields. Normalised, because other
/// documents within a task can name the same fields.
fn allowed(order: &RunOrder, roots: &SourceRoots) -> Result<Map<String, Value>, ErrorBody> {
    let Value::Object(task) = &order.task else {
        return Err(invalid("a task must be a JSON object"));
    };
    let mut task = normalise_task(task.clone())?;
    let has = |name: &str| task.get(name).is_some_and(|value| !value.is_null());
    if let Some((name, why)) = REFUSED.iter().find(|(name, _)| has(name)) {
        return Err(invalid(format!("{name} cannot be given here: {why}")));
    }
    if order.requester == Requester::Token
        && let Some((name, why)) = ADMINISTRATOR_ONLY.iter().find(|(name, _)| has(name))
    {
        let message = format!("only the administrator of this machine may set {name}: {why}");
        return Err(ErrorBody::new(ErrorCode::ServiceScopeMissing, message));
    }
    if order.profile.is_some()
        && let Some(name) = PROFILE_DECIDES.iter().find(|name| has(name))
    {
        return Err(invalid(format!(
            "{name} cannot be given together with a profile, which decides it; leave it out, or use another profile"
        )));
    }
    let mounts = task.get_mut("mounts").and_then(Value::as_array_mut);
    for mount in mounts.into_iter().flatten() {
        if let Some(source) = mount.get("source").and_then(Value::as_str) {
            mount["source"] = json!(roots.check(source)?);
        }
    }
    Ok(task)
}

/// Gives a task the network and the isolation level of a profile.
fn apply(profile: &Profile, task: &mut Map<String, Value>) {
    let mut policy = defaults(vec!["command-agent-run".to_owned()]);
    policy.network = profile.network.clone();
    policy.minimum_isolation = profile.isolation;
    task.insert("policy".to_owned(), json!(policy));
}

/// Returns the directory of a profile, if it has one.
fn workspace(profile: &Profile) -> Option<MountRequest> {
    let workspace = &profile.workspace;
    Some(MountRequest {
        source: workspace.source.clone()?,
        target: workspace.target.clone(),
        mode: workspace.access?,
        exclude: Vec::new(),
        git: workspace.git,
        metadata: None,
    })
}

/// Returns the highest limits of a run of a profile: those of its sandboxes.
fn of_profile(profile: &Profile) -> Result<LimitsRequest, ErrorBody> {
    let limits = LimitsRequest {
        wall_clock_ms: Some(profile.ttl.max_ms.min(LONGEST)),
        ..profile.resources.clone()
    };
    let limits = limits.resolve().map_err(|error| {
        let message = format!(
            "the profile {} cannot be used for runs: {error}; correct the profile",
            profile.id
        );
        ErrorBody::new(ErrorCode::ProfileInvalid, message)
    })?;
    Ok(limits.into())
}

/// Refuses limits above `most`, and lowers the defaults of absent ones to it.
fn bound(limits: &mut LimitsRequest, most: &LimitsRequest, rule: &str) -> Result<(), ErrorBody> {
    limits.bound_by(most).map_err(|above| {
        let AboveCeiling { field, value, ceiling } = above;
        let message = format!(
            "limits.{field} is {value}, but {rule} at most {ceiling}; ask for less, or use a profile that allows more"
        );
        ErrorBody::new(ErrorCode::LimitInvalid, message).with("field", format!("limits.{field}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::Limits;

    #[test]
    fn limit_above_the_bound_is_refused_and_an_absent_limit_stays_within_it() {
        let small = LimitsRequest {
            memory_bytes: Some(512 * MIB),
            ..CEILING
        };
        let mut given = LimitsRequest::default();
        bound(&mut given, &small, "the profile allows").unwrap();
        let given = given.resolve().unwrap();
        assert_eq!(given.memory_bytes, 512 * MIB);
        assert_eq!(given.wall_clock_ms, Limits::default().wall_clock_ms);
        for (field, mut asked) in [
            (
                "limits.memory_bytes",
                LimitsRequest {
                    memory_bytes: Some(32 * 1024 * MIB),
                    ..LimitsRequest::default()
                },
            ),
            (
                "limits.wall_clock_ms",
                LimitsRequest {
                    wall_clock_ms: Some(LONGEST),
                    ..LimitsRequest::default()
                },
            ),
        ] {
            let error = bound(&mut asked, &small, "the profile allows").unwrap_err();
            assert_eq!(error.code, ErrorCode::LimitInvalid);
            assert!(error.message.contains(field), "{error}");
        }
        // Positive control: the bound itself.
        let mut most = LimitsRequest {
            memory_bytes: Some(512 * MIB),
            ..LimitsRequest::default()
        };
        assert!(bound(&mut most, &small, "the profile allows").is_ok());
    }
}

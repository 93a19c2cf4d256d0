//! Profiles, runs and artifacts of this machine for the service, by the functions of the commands
//! `profile`, `runs`, `artifacts` and `agent-sandbox-run`.

use super::native::{self, Runner};
use super::run_order;
use super::source_roots::SourceRoots;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{
    BundleRow, Dir, HostKey, Store, StoredBundle, VerifyOptions, verify_bundle,
};
use wp_codebox_contracts::{
    CancelDetails, ErrorBody, ErrorCode, Limits, RunId, RunList, RunMode, RunRequest, RunStatus,
    SiteId, schema_id,
};
use wp_codebox_routing::ExtensionId;
use wp_codebox_runs::cancel_run;
use wp_codebox_runtime::{
    FoundRun, ListFilter, PageLimits, StateDir, StatusFilter, events, list_selected, reap_dead,
    status, view,
};
use wp_codebox_sandboxes::{LoadedProfile, Sandboxes, valid_profiles};
use wp_codebox_service::{
    Actor, Host, Page, PlannedRun, ProfileDocument, RunOrder, RunProgress, RunSelection, SandboxId,
};
use wp_codebox_settings::Settings;

/// Maximum number and size of the events that are read from a journal at once.
const EVENTS: PageLimits = PageLimits {
    count: 500,
    bytes: 4 * 1024 * 1024,
};
/// Shortest time between two test writes to the state directory.
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// Profiles, runs and artifacts of one site.
#[derive(Debug)]
pub(crate) struct Machine {
    state: StateDir,
    site: SiteId,
    settings: Settings,
    runner: Runner,
    source_roots: SourceRoots,
    /// Maximum number of runs and sandboxes of the site at one time.
    max_runs: u32,
    /// Extension whose prices apply to runs.
    extension: ExtensionId,
    /// Time and result of the last test write to the state directory. Every client may ask for it.
    probe: Mutex<Option<(Instant, Result<(), ErrorBody>)>>,
}

impl Machine {
    /// Opens the state directory. The calling process must run as its owner.
    ///
    /// # Errors
    /// `wp_codebox_state_dir_invalid`.
    pub(crate) fn new(
        settings: Settings,
        site: SiteId,
        runner: Runner,
        source_roots: SourceRoots,
        max_runs: u32,
    ) -> Result<Self, ErrorBody> {
        Ok(Self {
            state: StateDir::open(&settings.state_dir)?,
            site,
            settings,
            runner,
            source_roots,
            max_runs,
            extension: ExtensionId::native(),
            probe: Mutex::default(),
        })
    }

    /// Returns the run with exactly this id.
    fn found(&self, id: &str) -> Result<FoundRun, ErrorBody> {
        let sandboxes = Sandboxes {
            state: &self.state,
            site: &self.site,
        };
        let run = RunId::new(id).ok().map(|id| sandboxes.run(id));
        let run = run.filter(|run| run.path.is_dir()).ok_or_else(|| {
            ErrorBody::new(ErrorCode::RunNotFound, "this machine has no such run")
        })?;
        reap_dead(&self.state, &self.site)?;
        Ok(run)
    }

    fn store(&self) -> Result<(Dir, Store), ErrorBody> {
        let root = Dir::open(self.state.path()).map_err(|e| {
            let message = format!("the state directory cannot be opened: {e}");
            ErrorBody::new(ErrorCode::StateDirInvalid, message)
        })?;
        let store = Store::open(&root, &self.site)?;
        Ok((root, store))
    }

    /// Returns the bundle of the run with exactly this id.
    fn bundle(&self, run: &str) -> Result<(Dir, StoredBundle), ErrorBody> {
        let (root, store) = self.store()?;
        let bundle = store.resolve(run)?;
        if bundle.row.run_id.as_str() != run {
            let message = "this run has no bundle";
            return Err(ErrorBody::new(ErrorCode::ArtifactNotFound, message));
        }
        Ok((root, bundle))
    }
}

/// A checked run of this machine.
struct Planned<'a> {
    machine: &'a Machine,
    request: RunRequest,
    /// Task as the client sent it.
    task: Value,
}

impl PlannedRun for Planned<'_> {
    fn duration_ms(&self) -> u64 {
        let limit = self.request.limits.wall_clock_ms;
        limit.unwrap_or(Limits::default().wall_clock_ms)
    }

    fn follow_up(&self) -> Option<&str> {
        let of = &self.request.follow_up.as_ref()?.of;
        of.run_id.as_deref().or(of.artifact_id.as_deref())
    }

    fn set_follow_up(&mut self, run: &str) {
        if let Some(follow_up) = &mut self.request.follow_up {
            follow_up.of.artifact_id = None;
            follow_up.of.run_id = Some(run.to_owned());
        }
    }

    fn start(self: Box<Self>) -> Result<Value, ErrorBody> {
        let machine = self.machine;
        machine
            .runner
            .supervisor(&machine.settings, RunMode::Detached)?
            .until_accepted(&self.request)?;
        let run_id = &self.request.run_id;
        let view = view(&machine.state, &machine.found(run_id.as_str())?)?;
        let mut handle = json!({
            "success": true, "schema": schema_id::RUN_HANDLE, "run_id": run_id,
            "status": "running", "created_at": view.created_at, "cursor": 0,
        });
        for name in ["sandbox_session_id", "session_id", "orchestrator"] {
            if let Some(echoed) = self.task.get(name).filter(|value| !value.is_null()) {
                handle[name] = echoed.clone();
            }
        }
        Ok(handle)
    }
}

fn document(LoadedProfile { profile, text }: LoadedProfile) -> ProfileDocument {
    ProfileDocument {
        document: json!(profile),
        route: profile.route_request(),
        scope_default: profile.scope_default,
        ttl_default_ms: profile.ttl.default_ms,
        ttl_max_ms: profile.ttl.max_ms,
        secret_names: profile
            .setup
            .secret_refs
            .iter()
            .map(|secret| secret.name.clone())
            .collect(),
        sha256: profile.sha256.to_string(),
        id: profile.id,
        version: profile.version,
        text,
    }
}

/// Returns a sort key that orders versions by precedence (semver.org, section 11).
fn precedence(version: &str) -> impl Ord + use<> {
    let version = version.split('+').next().unwrap_or_default();
    let (numbers, label) = match version.split_once('-') {
        Some((numbers, label)) => (numbers, Some(label)),
        None => (version, None),
    };
    let numbers: Vec<u64> = numbers.split('.').map(|n| n.parse().unwrap_or(0)).collect();
    let labels: Vec<(bool, u64, String)> = label
        .iter()
        .flat_map(|label| label.split('.'))
        .map(|part| match part.parse() {
            Ok(number) => (false, number, String::new()),
            Err(_) => (true, 0, part.to_owned()),
        })
        .collect();
    // A version without a label comes after all pre-releases of it.
    (numbers, label.is_none(), labels)
}

impl Host for Machine {
    fn profiles(&self) -> Result<Vec<ProfileDocument>, ErrorBody> {
        let mut all: Vec<ProfileDocument> = valid_profiles(self.state.path())
            .into_iter()
            .map(document)
            .collect();
        all.sort_by_cached_key(|one| (one.id.clone(), precedence(&one.version)));
        Ok(all)
    }

    fn profile(&self, reference: &str) -> Result<ProfileDocument, ErrorBody> {
        let (id, version) = match reference.split_once('@') {
            Some((id, version)) => (id, Some(version)),
            None => (reference, None),
        };
        let fits = |one: &ProfileDocument| {
            one.id == id && version.is_none_or(|version| version == one.version)
        };
        let found = self.profiles()?.into_iter().rfind(fits);
        found.ok_or_else(|| {
            let message = format!("there is no profile {reference:?}");
            ErrorBody::new(ErrorCode::ProfileNotFound, message)
                .hint("wp-codebox profile list shows the profiles of the state directory")
        })
    }

    fn run_extension(&self) -> &str {
        self.extension.as_str()
    }

    fn runs(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody> {
        let filter = ListFilter {
            status: StatusFilter::Any,
            limit: page.limit,
            offset: page.offset,
        };
        let sites = std::slice::from_ref(&self.site);
        let selected = |run: &RunId| which.has(run.as_str());
        let page = list_selected(&self.state, sites, filter, selected)?;
        Ok(json!(RunList {
            schema: schema_id::RUN_LIST.to_owned(),
            total: page.total,
            runs: page.rows.into_iter().map(|(_, view)| view).collect(),
            unreadable: page.unreadable,
        }))
    }

    fn run(&self, id: &str) -> Result<Value, ErrorBody> {
        let view = view(&self.state, &self.found(id)?)?;
        Ok(json!(view))
    }

    fn run_events(&self, id: &str, after: u64) -> Result<Value, ErrorBody> {
        let run = self.found(id)?;
        let page = events(&self.state, &run, after, EVENTS)?;
        Ok(json!(page))
    }

    fn run_progress(&self, run: &str) -> Result<RunProgress, ErrorBody> {
        let found = match self.found(run) {
            Err(error) if error.code == ErrorCode::RunNotFound => return Ok(RunProgress::Unknown),
            other => other?,
        };
        match status(&self.state, &found)? {
            RunStatus::Running => Ok(RunProgress::Running),
            RunStatus::Ended => Ok(RunProgress::Ended(native::usage(&found)?)),
        }
    }

    fn plan_run(&self, order: RunOrder) -> Result<Box<dyn PlannedRun + '_>, ErrorBody> {
        let request = run_order::request(
            &order,
            &self.settings,
            &self.site,
            &self.source_roots,
            self.max_runs,
        )?;
        Ok(Box::new(Planned {
            machine: self,
            request,
            task: order.task,
        }))
    }

    fn forestall_run(&self, run: &SandboxId) -> Result<(), ErrorBody> {
        native::forestall(&self.state, &self.site, run, ErrorCode::RunnerUnavailable)
    }

    fn cancel_run(&self, id: &str, actor: &Actor, reason: &str) -> Result<Value, ErrorBody> {
        let wish = CancelDetails {
            actor: Some(actor.to_string()),
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        };
        let answer = cancel_run(&self.state, &self.found(id)?, &wish)?;
        Ok(json!(answer))
    }

    fn artifacts(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody> {
        let mut rows = self.store()?.1.list()?;
        rows.retain(|row| which.has(row.run_id.as_str()));
        let total = rows.len();
        let rows = rows.into_iter().skip(page.offset).take(page.limit);
        let rows = rows.map(|row| {
            let mut shown = json!(row);
            shown["id"] = json!(row.artifact_id);
            shown
        });
        Ok(json!({
            "success": true, "schema": "wp-codebox/artifact-list/v1", "total": total,
            "artifacts": rows.collect::<Vec<Value>>(),
        }))
    }

    fn runs_of_artifact(&self, id: &str) -> Result<Vec<String>, ErrorBody> {
        let rows = self.store()?.1.list()?;
        let is_it =
            |row: &&BundleRow| row.run_id.as_str() == id || row.artifact_id.as_deref() == Some(id);
        let found = rows.iter().filter(is_it);
        Ok(found.map(|row| row.run_id.to_string()).collect())
    }

    fn artifact(&self, run: &str) -> Result<Value, ErrorBody> {
        let (_, bundle) = self.bundle(run)?;
        let mut shown = json!(bundle.row);
        shown["id"] = json!(bundle.row.artifact_id);
        for (name, member) in [
            ("manifest", "manifest.json"),
            ("metadata", "metadata.json"),
            ("changed_files", "files/changed-files.json"),
            ("review", "files/review.json"),
            ("test_results", "files/test-results.json"),
        ] {
            shown[name] = bundle.document(member);
        }
        Ok(json!({"success": true, "schema": "wp-codebox/artifact/v1", "artifact": shown}))
    }

    fn verify_artifact(&self, run: &str) -> Result<Value, ErrorBody> {
        let (root, bundle) = self.bundle(run)?;
        let key = HostKey::load(&root)?;
        let options = VerifyOptions {
            trusted: key.trusted(Vec::new()),
        };
        let mut verification = json!(verify_bundle(&bundle.directory, &options));
        // Do not show a path of this machine to a caller.
        if let Value::Object(members) = &mut verification {
            members.shift_remove("bundleDirectory");
        }
        Ok(verification)
    }

    fn ready(&self) -> Result<(), ErrorBody> {
        let mut last = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.take().filter(|(at, _)| at.elapsed() < PROBE_PAUSE);
        let (at, room) = known.unwrap_or_else(|| {
            let room = self.state.probe_room().map_err(ErrorBody::from);
            (Instant::now(), room)
        });
        *last = Some((at, room.clone()));
        room?;
        self.settings.named_wordpress().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_versions_sort_by_number_and_pre_releases_before_their_release() {
        let ordered = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.2",
            "1.0.0-rc.11",
            "1.0.0",
            "1.2.0",
            "1.10.0+build.5",
        ];
        for pair in ordered.windows(2) {
            assert!(precedence(pair[0]) < precedence(pair[1]), "{pair:?}");
        }
    }
}

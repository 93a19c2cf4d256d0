//! Profiles, runs and artifacts of this machine for the service, by the functions of the commands
//! `profile`, `runs`, `artifacts` and `agent-sandbox-run`.

use super::native::Runner;
use super::source_roots::SourceRoots;
use crate::groups::{TaskArgs, run_request};
use crate::guest_args::StoreArgs;
use crate::placement::PlacementArgs;
use crate::profile::{self, Loaded};
use crate::{Settings, cancel};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use wp_codebox_artifacts::{
    Dir, HostKey, Store, StoredBundle, TrustedKeys, VerifyOptions, verify_bundle,
};
use wp_codebox_contracts::{
    CancelDetails, ErrorBody, ErrorCode, RunList, RunMode, SiteId, schema_id,
};
use wp_codebox_runtime::{
    FoundRun, ListFilter, PageLimits, StateDir, StatusFilter, events, find, list, view,
};
use wp_codebox_service::{Actor, Host, Page, ProfileDocument};

/// Maximum number and size of the events that are read from a journal at once.
const EVENTS: PageLimits = PageLimits {
    count: 500,
    bytes: 4 * 1024 * 1024,
};
/// Fields of a task that the service refuses, each with the reason. A caller of the service is not
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

/// Profiles, runs and artifacts of one site.
#[derive(Debug)]
pub(crate) struct Machine {
    state: StateDir,
    site: SiteId,
    settings: Settings,
    runner: Runner,
    source_roots: SourceRoots,
    /// Lock for a test write to the state directory: test writes of one process use the same file.
    probe: Mutex<()>,
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
    ) -> Result<Self, ErrorBody> {
        Ok(Self {
            state: StateDir::open(&settings.state_dir).map_err(|e| e.body())?,
            site,
            settings,
            runner,
            source_roots,
            probe: Mutex::default(),
        })
    }

    fn found(&self, id: &str) -> Result<FoundRun, ErrorBody> {
        find(&self.state, std::slice::from_ref(&self.site), id).map_err(|e| e.body())
    }

    fn store(&self) -> Result<(Dir, Store), ErrorBody> {
        let root = Dir::open(self.state.path()).map_err(|e| {
            let message = format!("the state directory cannot be opened: {e}");
            ErrorBody::new(ErrorCode::StateDirInvalid, message)
        })?;
        let store = Store::open(&root, &self.site).map_err(|e| e.body())?;
        Ok((root, store))
    }

    fn bundle(&self, id: &str) -> Result<(Dir, StoredBundle), ErrorBody> {
        let (root, store) = self.store()?;
        Ok((root, store.resolve(id).map_err(|e| e.body())?))
    }

    /// Reads the task of a caller. Fails if a mount in the task has a source outside the
    /// directories of `--source-root`.
    fn task(&self, task: &Value) -> Result<Map<String, Value>, ErrorBody> {
        let invalid = |what: String| ErrorBody::new(ErrorCode::InputInvalid, what);
        let Value::Object(task) = task else {
            return Err(invalid("a task must be a JSON object".to_owned()));
        };
        if let Some((name, why)) = REFUSED.iter().find(|(name, _)| task.contains_key(*name)) {
            return Err(invalid(format!("{name} cannot be given here: {why}")));
        }
        let mut task = task.clone();
        let mounts = task.get_mut("mounts").and_then(Value::as_array_mut);
        for mount in mounts.into_iter().flatten() {
            if let Some(source) = mount.get("source").and_then(Value::as_str) {
                mount["source"] = json!(self.source_roots.check(source)?);
            }
        }
        Ok(task)
    }
}

fn document(Loaded { profile, text }: Loaded) -> ProfileDocument {
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
        let mut all: Vec<ProfileDocument> = profile::all(self.state.path())
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

    fn runs(&self, page: Page) -> Result<Value, ErrorBody> {
        let filter = ListFilter {
            status: StatusFilter::Any,
            limit: page.limit,
            offset: page.offset,
        };
        let sites = std::slice::from_ref(&self.site);
        let (total, rows) = list(&self.state, sites, filter).map_err(|e| e.body())?;
        Ok(json!(RunList {
            schema: schema_id::RUN_LIST.to_owned(),
            total,
            runs: rows.into_iter().map(|(_, view)| view).collect(),
        }))
    }

    fn run(&self, id: &str) -> Result<Value, ErrorBody> {
        let view = view(&self.state, &self.found(id)?).map_err(|e| e.body())?;
        Ok(json!(view))
    }

    fn run_events(&self, id: &str, after: u64) -> Result<Value, ErrorBody> {
        let run = self.found(id)?;
        let page = events(&self.state, &run, after, EVENTS).map_err(|e| e.body())?;
        Ok(json!(page))
    }

    fn start_run(&self, task: &Value, actor: &Actor) -> Result<Value, ErrorBody> {
        let args = TaskArgs {
            input_file: PathBuf::from("-"),
            result_file: None,
            artifacts: None,
            model_key_env: None,
            model_api: None,
            max_runs: 8,
            placement: PlacementArgs::default(),
            store: StoreArgs {
                site: self.site.as_str().to_owned(),
                ..StoreArgs::default()
            },
        };
        let mut request = run_request(&self.task(task)?, &args, &self.settings)?;
        request.mode = RunMode::Detached;
        request
            .provenance
            .insert("requester".to_owned(), json!(actor.to_string()));
        let run_id = request.run_id.clone();
        self.runner
            .supervisor(&self.settings, RunMode::Detached)?
            .until_accepted(&request)?;
        let run = self.found(run_id.as_str())?;
        let view = view(&self.state, &run).map_err(|e| e.body())?;
        let mut handle = json!({
            "success": true, "schema": schema_id::RUN_HANDLE, "run_id": run_id,
            "status": "running", "created_at": view.created_at, "cursor": 0,
        });
        for name in ["sandbox_session_id", "session_id", "orchestrator"] {
            if let Some(echoed) = task.get(name).filter(|value| !value.is_null()) {
                handle[name] = echoed.clone();
            }
        }
        Ok(handle)
    }

    fn cancel_run(&self, id: &str, actor: &Actor, reason: &str) -> Result<Value, ErrorBody> {
        let wish = CancelDetails {
            actor: Some(actor.to_string()),
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        };
        let answer = cancel::cancel(&self.state, &self.found(id)?, &wish)?;
        Ok(json!(answer))
    }

    fn artifacts(&self, page: Page) -> Result<Value, ErrorBody> {
        let rows = self.store()?.1.list().map_err(|e| e.body())?;
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

    fn artifact(&self, id: &str) -> Result<Value, ErrorBody> {
        let (_, bundle) = self.bundle(id)?;
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

    fn verify_artifact(&self, id: &str) -> Result<Value, ErrorBody> {
        let (root, bundle) = self.bundle(id)?;
        let key = HostKey::load(&root).map_err(|e| e.body())?;
        let options = VerifyOptions {
            trusted: TrustedKeys {
                host: Some(key.public_half()),
                known: Vec::new(),
            },
        };
        let mut verification = json!(verify_bundle(&bundle.directory, &options));
        // Do not show a path of this machine to a caller.
        if let Value::Object(members) = &mut verification {
            members.shift_remove("bundleDirectory");
        }
        Ok(verification)
    }

    fn ready(&self) -> Result<(), ErrorBody> {
        let _turn = self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.probe_writable().map_err(|e| e.body())?;
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

//! Requests of all kinds become tasks and requests again.

use super::*;
use crate::layers::PackRules;
use crate::objects::tests::MemoryObjects;
use crate::values::SecretValues;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{
    CodedError, ErrorCode, GitChoice, RunId, RunMode, RunPaths, RunRequest, Sha256Hex, SiteId,
};

/// Part of every value that must not leave the submitting host.
const CANARY: &str = "canary-5f1d";

pub(crate) fn minimal_task(layer: &Sha256Hex) -> ClusterTask {
    let value = json!({
        "schema": SCHEMA, "run_id": format!("run_{:032x}", 1), "wordpress": layer, "mounts": [],
        "limits": {"wall_clock_ms": null, "processes": null, "memory_bytes": null,
            "disk_bytes": null, "output_bytes": null},
        "find_renames": false, "redact": 0,
        "outer_sandbox": {"kind": "none", "need": "required"},
    });
    let task: ClusterTask = serde_json::from_value(value).unwrap();
    assert_eq!(task.wordpress, *layer);
    task
}

/// Inputs that read no file: a layer's digest is that of its path; [`layers`] has its directory.
#[derive(Debug, Default)]
struct FakeInputs {
    files: Vec<String>,
    seen: Vec<String>,
    rules: Vec<PackRules>,
}

impl InputSource for FakeInputs {
    fn directory(
        &mut self,
        path: &str,
        _: &str,
        rules: &PackRules,
    ) -> Result<(Sha256Hex, WorkTree), TaskError> {
        self.seen.push(path.to_owned());
        self.rules.push(rules.clone());
        let work_tree = match path.ends_with("-git") {
            true => WorkTree::Inside,
            false => WorkTree::Outside,
        };
        Ok((sha256(path.as_bytes()), work_tree))
    }
    fn wordpress(&mut self, path: &str) -> Result<Sha256Hex, TaskError> {
        self.seen.push(path.to_owned());
        Ok(sha256(path.as_bytes()))
    }
    fn file(&mut self, path: &str, _: &str) -> Result<String, TaskError> {
        self.files.push(path.to_owned());
        Ok(format!("f{}", self.files.len()))
    }
    fn files(&mut self) -> Result<Option<Sha256Hex>, TaskError> {
        let all = self.files.join("\n");
        Ok((!self.files.is_empty()).then(|| sha256(all.as_bytes())))
    }
}

fn layers(task: &ClusterTask) -> BTreeMap<Sha256Hex, PathBuf> {
    let place = |digest: Sha256Hex| {
        let path = PathBuf::from(format!("/layers/{digest}"));
        (digest, path)
    };
    task.inputs().into_iter().map(place).collect()
}

fn run_id() -> RunId {
    RunId::new(format!("run_{:032x}", 7)).unwrap()
}

/// Host paths with the canary.
fn paths() -> Value {
    let path = |name: &str| format!("/{CANARY}/{name}");
    json!({
        "state_dir": path("state"), "share_dir": path("share"), "launcher": path("launch"),
        "php_binary": path("php"), "wordpress": path("wordpress"), "denied": [path("denied")],
        "code_roots": [path("code")], "allowed_roots": [path("allowed")], "cgroup": path("cgroup"),
        "agents_dir": path("agents"), "browser": path("browser"),
    })
}

/// A request in which every field has a value, except the fields that need the submitting host.
fn full_request() -> Value {
    let path = |name: &str| format!("/{CANARY}/{name}");
    json!({
        "schema": "wp-codebox/run-request/v1", "run_id": run_id(), "site": "site-1",
        "mode": "attached", "max_runs": 3, "paths": paths(),
        "task": {
            "schema": "wp-codebox/task-input/v1", "version": 1, "goal": "Füge etwas hinzu",
            "target": {"kind": "plugin", "n": 1.5}, "allowed_tools": ["workspace.read"],
            "expected_artifacts": ["a"], "structured_artifacts": [{"z": 1, "a": [null, true]}],
            "staged_files": [{"source": path("staged-task"), "target": "/run/codebox/staged/a"}],
            "tool_bridge": {"x": 1}, "parent_tool_bridge": {"y": 2},
            "sandbox_tool_policy": {"p": 3}, "policy": {"q": 4}, "context": {"r": 5},
        },
        "policy": {
            "network": {"allowHosts": ["example.org"], "presets": ["model"], "tls": "terminate"},
            "filesystem": "readwrite-mounts", "commands": ["wordpress.run-php"],
            "secrets": "connector-scoped", "approvals": "never", "expose_secrets": ["TOKEN"],
        },
        "mounts": [
            {"source": path("plugin-git"), "target": "/workspace/a", "mode": "readwrite",
                "exclude": ["node_modules"], "metadata": {"slug": "a"}},
            {"source": path("plain"), "target": "/workspace/b", "mode": "readonly", "git": "none"},
            {"source": path("archive.zip"), "target": "/workspace/c", "git": "baseline"},
            {"source": path("copied"), "target": "/workspace/d"},
            {"source": path("unused"), "target": "/workspace/e"},
        ],
        "seeds": [{"name": "s", "scopes": {"posts": true}, "content": "{}"}],
        "activate": [{"kind": "plugin", "name": "demo/demo.php", "required": true}],
        "commands": [{"command": "wordpress.run-php", "args": ["code=echo 1;"]}],
        "workflow": {
            "steps": [{"phase": "steps", "index": 0, "call": {"command": "wordpress.run-php",
                "args": []}, "timeout_ms": 5, "on_failure": "advise", "expect_json": true,
                "continuation": {"n": 2}, "metadata": {"m": 1}, "name": "n"}],
            "collect": [{"name": "c", "path": "/tmp/c", "required": true, "parse_json": false,
                "typed": {"type": "x"}}],
            "env": {"MODE": "test"},
            "staged": [{"source": path("staged-recipe"), "target": "/run/codebox/staged/b"}],
            "files": [{"target": "/run/codebox/staged/c", "content": "text"}],
            "made": [
                {"of": "/workspace/c", "from": {"kind": "archive", "sha256": "00", "subdir": "x"}},
                {"of": "/workspace/d", "from": {"kind": "copy", "without": ["private"]}},
                {"of": "/workspace/e", "from": {"kind": "files", "files": {"a.txt": "b"}}},
                {"of": "zipped", "from": {"kind": "archive"}},
            ],
            "uncaptured": ["/workspace/b"],
            "workspace_rule": {"workspaces": ["/workspace/a"], "writable_roots": ["."],
                "hidden_paths": ["x"], "on_breach": "stop"},
            "php_ini": ["memory_limit=1G"],
        },
        "agent": {"kind": "command", "argv": ["a", "b"], "success_codes": [0, 3],
            "env": {"A": "1"}, "preset": "p"},
        "model": {"provider": "p", "model": "m", "api": "openai-chat",
            "base_url": "https://models.example/v1", "secret": "MODEL_KEY", "context_tokens": 5,
            "max_output_tokens": 6, "prices": {"input": 1, "cached_input": 2, "output": 3}},
        "tool_policy": {"schema": "wp-codebox/sandbox-tool-policy/v1", "version": 1, "tools": []},
        "components": [
            {"slug": "one", "source": path("component"), "load_as": "mu-plugin",
                "entry": "one.php", "activate": true, "required": true,
                "readiness_probe": {"type": "filter", "name": "ready"}},
            {"slug": "zipped", "source": path("component.zip")},
        ],
        "agent_bundles": [
            {"source": path("bundle.json"), "slug": "s", "on_conflict": "skip", "owner_id": 2,
                "token_env": "TOKEN", "import_principal": {"id": 1}},
            {"bundle": {"inline": true}},
        ],
        "checks": ["php -l a.php"],
        "limits": {"wall_clock_ms": 1000, "processes": 10, "memory_bytes": 1, "disk_bytes": 2,
            "output_bytes": 3},
        "services": [{"id": "db", "kind": "mysql", "configuration": {"engine": "mariadb"},
            "outputs": {"host": "DB_HOST", "port": ["P1", "P2"]}}],
        "find_renames": true,
        "secrets": [
            {"env": "TOKEN", "value": format!("{CANARY}-token"), "hosts": ["example.org:443"]},
            {"env": "MODEL_KEY", "value": format!("{CANARY}-key"), "hosts": []},
        ],
        "outer_sandbox": {"kind": "bubblewrap", "need": "preferred"},
        "redact": [format!("{CANARY}-one"), format!("{CANARY}-two")],
        "provenance": {"requester": {"id": 1}},
    })
}

fn request(value: Value) -> RunRequest {
    serde_json::from_value(value).unwrap()
}

fn built(value: Value) -> Result<(ClusterTask, SecretValues, FakeInputs), TaskError> {
    let mut inputs = FakeInputs::default();
    let (task, values) = ClusterTask::of_request(request(value), &mut inputs)?;
    Ok((task, values, inputs))
}

fn node() -> NodeSettings {
    let paths = json!({"state_dir": "/node/state", "share_dir": "/node/share",
        "launcher": "/node/launch", "php_binary": "/node/php", "wordpress": "/unused"});
    NodeSettings {
        site: SiteId::new("cluster-team").unwrap(),
        mode: RunMode::Detached,
        max_runs: 9,
        paths: serde_json::from_value::<RunPaths>(paths).unwrap(),
        git: GitSupport::Available,
        private_models: PrivateModels::Refuse,
    }
}

fn restored(task: &ClusterTask, values: SecretValues) -> Result<RunRequest, TaskError> {
    let digest = task.digest().unwrap();
    task.clone()
        .into_request(&digest, 4, node(), &layers(task), values)
}

fn place_of(name: &str) -> String {
    format!("/layers/{}", sha256(format!("/{CANARY}/{name}").as_bytes()))
}

/// Returns the request that a node must make of [`full_request`].
fn expected(task: &ClusterTask) -> Value {
    let mut value = full_request();
    let files = format!("/layers/{}", task.files.clone().unwrap());
    value["site"] = json!("cluster-team");
    value["mode"] = json!("detached");
    value["max_runs"] = json!(9);
    let inputs: Vec<Sha256Hex> = task.inputs().into_iter().collect();
    let roots: Vec<String> = inputs.iter().map(|d| format!("/layers/{d}")).collect();
    value["paths"] = json!({"state_dir": "/node/state", "share_dir": "/node/share",
        "launcher": "/node/launch", "php_binary": "/node/php",
        "wordpress": place_of("wordpress"), "allowed_roots": roots});
    for (index, source) in [
        (0, place_of("plugin-git")),
        (1, place_of("plain")),
        (3, place_of("copied")),
        (4, "/dev/null".to_owned()),
    ] {
        value["mounts"][index]["source"] = json!(source);
    }
    // `auto` is replaced by what it means on the submitting host.
    value["mounts"][0]["git"] = json!("baseline");
    value["mounts"][3]["git"] = json!("none");
    value["mounts"][4]["git"] = json!("none");
    // Single files are numbered in the order in which the request's files are added.
    value["mounts"][2]["source"] = json!(format!("{files}/f1"));
    value["components"][0]["source"] = json!(place_of("component"));
    value["components"][1]["source"] = json!(format!("{files}/f2"));
    value["task"]["staged_files"][0]["source"] = json!(format!("{files}/f3"));
    value["workflow"]["staged"][0]["source"] = json!(format!("{files}/f4"));
    value["agent_bundles"][0]["source"] = json!(format!("{files}/f5"));
    value["provenance"]["cluster"] =
        json!({"task": task.digest().unwrap(), "epoch": 4, "inputs": inputs});
    value
}

#[test]
fn request_restored_on_a_node_equals_the_submitted_one_except_for_fields_that_the_node_replaces() {
    let (task, values, inputs) = built(full_request()).unwrap();
    let found = serde_json::to_value(restored(&task, values).unwrap()).unwrap();
    let wanted = serde_json::to_value(request(expected(&task))).unwrap();
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(found[key], *value, "{key}");
    }
    assert_eq!(found, wanted);
    // What a recipe leaves out of a copy is not packed.
    let without = PackRules::without(&["private".to_owned()]);
    let whole = PackRules::whole();
    assert_eq!(inputs.rules, [whole.clone(), whole.clone(), without, whole]);
}

#[test]
fn request_with_any_subset_of_the_optional_fields_is_restored_unchanged_on_a_node() {
    // Each subset of the optional fields, with the required ones, is a valid request.
    let required = ["schema", "run_id", "site", "paths"];
    let all = full_request();
    let optional: Vec<&String> = all
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| !required.contains(&key.as_str()))
        .collect();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for case in 0..300 {
        let mut value = all.clone();
        for key in &optional {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            if seed.is_multiple_of(2) {
                value.as_object_mut().unwrap().remove(*key);
            }
        }
        let whole = request(value.clone());
        let (task, values, _) = built(value).unwrap();
        let bytes = task.to_bytes().unwrap();
        let read = ClusterTask::read(&bytes, &task.digest().unwrap()).unwrap();
        assert_eq!(read, task, "case {case}");
        let found = restored(&read, values).unwrap();
        let same = |one: Value, other: Value, what: &str| assert_eq!(one, other, "{what} {case}");
        same(json!(found.policy), json!(whole.policy), "policy");
        same(json!(found.seeds), json!(whole.seeds), "seeds");
        same(json!(found.activate), json!(whole.activate), "activate");
        same(json!(found.commands), json!(whole.commands), "commands");
        same(json!(found.agent), json!(whole.agent), "agent");
        same(json!(found.model), json!(whole.model), "model");
        same(json!(found.tool_policy), json!(whole.tool_policy), "tools");
        same(json!(found.checks), json!(whole.checks), "checks");
        same(json!(found.limits), json!(whole.limits), "limits");
        same(json!(found.services), json!(whole.services), "services");
        same(json!(found.secrets), json!(whole.secrets), "secrets");
        same(json!(found.redact), json!(whole.redact), "redact");
        same(
            json!(found.outer_sandbox),
            json!(whole.outer_sandbox),
            "wrapper",
        );
        same(
            json!(found.find_renames),
            json!(whole.find_renames),
            "renames",
        );
        assert_eq!(found.mounts.len(), whole.mounts.len(), "case {case}");
        assert_eq!(found.components.len(), whole.components.len());
        assert_eq!(found.task.is_some(), whole.task.is_some());
        assert_eq!(found.workflow.is_some(), whole.workflow.is_some());
    }
}

#[test]
fn task_document_contains_no_host_path_and_no_value_of_a_secret() {
    let (task, values, _) = built(full_request()).unwrap();
    let text = String::from_utf8(task.to_bytes().unwrap()).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    assert!(text.contains("TOKEN") && text.contains("/workspace/a"));
    assert!(!format!("{values:?}").contains(CANARY));
    // Control: the request contains the canary in each of these places.
    let whole = full_request().to_string();
    assert_eq!(whole.matches(CANARY).count(), 25);
}

#[test]
fn field_that_needs_the_submitting_host_is_refused_and_the_error_names_the_field() {
    built(full_request()).unwrap();
    for (pointer, value, field) in [
        ("/hold", json!({"ttl_ms": 1, "max_ttl_ms": 1}), "hold"),
        ("/parent_tools", json!({"tools": []}), "parent_tools"),
        (
            "/follow_up",
            json!({"of": {"run_id": run_id()}}),
            "follow_up_of",
        ),
        ("/mounts/1/git", json!("history"), "mounts[1].git"),
        (
            "/outer_sandbox/program",
            json!("/usr/bin/bwrap"),
            "outer_sandbox.program",
        ),
        ("/provenance/cluster", json!({}), "provenance.cluster"),
    ] {
        let mut value_of = full_request();
        let (above, key) = pointer.rsplit_once('/').unwrap();
        value_of.pointer_mut(above).unwrap()[key] = value;
        let error = built(value_of).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PlacementUnsupported, "{pointer}");
        let body = error.body();
        assert_eq!(body.data.unwrap()["field"], field);
        assert!(body.message.starts_with(field), "{}", body.message);
    }
}

#[test]
fn value_of_a_secret_in_another_part_of_the_task_is_refused() {
    for (pointer, text, name) in [
        ("/task/goal", format!("use {CANARY}-token"), "TOKEN"),
        ("/checks/0", format!("curl {CANARY}-key"), "MODEL_KEY"),
        ("/workflow/env/MODE", format!("{CANARY}-two"), "redact"),
    ] {
        let mut value = full_request();
        *value.pointer_mut(pointer).unwrap() = json!(text);
        let error = built(value).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SecretInvalid, "{pointer}");
        assert!(error.to_string().contains(name), "{error}");
        assert!(!error.to_string().contains(CANARY), "{error}");
    }
    // A value that JSON writes in another form is found too.
    let mut value = full_request();
    value["secrets"][0]["value"] = json!("two\nlines\"quoted");
    value["task"]["goal"] = json!("a two\nlines\"quoted b");
    assert!(built(value).is_err());
}

#[test]
fn model_at_a_private_address_needs_the_permission_of_the_node() {
    let mut value = full_request();
    value["model"]["private"] = json!(true);
    let (task, values, _) = built(value).unwrap();
    let error = restored(&task, values.clone()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlacementUnsupported);
    let digest = task.digest().unwrap();
    let settings = NodeSettings {
        private_models: PrivateModels::Allow,
        ..node()
    };
    let places = layers(&task);
    let found = task.into_request(&digest, 1, settings, &places, values);
    assert!(found.unwrap().model.unwrap().private);
}

#[test]
fn mount_without_a_git_choice_gets_a_baseline_if_its_source_has_a_work_tree_and_the_node_has_git() {
    let (task, values, _) = built(full_request()).unwrap();
    let digest = task.digest().unwrap();
    let without = NodeSettings {
        git: GitSupport::Unavailable,
        ..node()
    };
    let places = layers(&task);
    let found = task
        .clone()
        .into_request(&digest, 1, without, &places, values.clone())
        .unwrap();
    let git = |request: &RunRequest| request.mounts.iter().map(|m| m.git).collect::<Vec<_>>();
    use GitChoice::{Baseline, None};
    // Mounts 1 and 2 have a choice, which stays, and the node then refuses the run with a code of
    // its own. Of the other mounts, only the source of mount 0 has a work tree.
    assert_eq!(git(&found), [None, None, Baseline, None, None]);
    let found = restored(&task, values).unwrap();
    assert_eq!(git(&found), [Baseline, None, Baseline, None, None]);
}

#[test]
fn missing_layer_or_secret_is_an_error_that_names_it_and_a_missing_redact_value_is_an_error() {
    let (task, values, _) = built(full_request()).unwrap();
    let digest = task.digest().unwrap();
    let mut places = layers(&task);
    let (gone, _) = places.pop_first().unwrap();
    let found = task
        .clone()
        .into_request(&digest, 1, node(), &places, values.clone());
    assert!(
        matches!(&found, Err(TaskError::NoLayer { digest }) if *digest == gone),
        "{found:?}"
    );
    let mut less = values.clone();
    less.secrets.remove("MODEL_KEY");
    assert!(matches!(
        restored(&task, less),
        Err(TaskError::NoValue { name }) if name == "MODEL_KEY"
    ));
    let mut less = values.clone();
    less.redact.pop();
    assert!(restored(&task, less).is_err());
    restored(&task, values).unwrap();
}

#[test]
fn document_with_unknown_members_another_digest_or_paths_of_a_host_is_refused() {
    let (task, ..) = built(full_request()).unwrap();
    let good = task.to_bytes().unwrap();
    ClusterTask::read(&good, &sha256(&good)).unwrap();
    assert!(ClusterTask::read(&good, &sha256(b"other")).is_err());
    let base: Value = serde_json::from_slice(&good).unwrap();
    let judged = |bytes: &[u8]| {
        let error = ClusterTask::read(bytes, &sha256(bytes)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterUnreadable);
    };
    for (pointer, key, value) in [
        ("", "new", json!(1)),
        ("/mounts/0", "new", json!(1)),
        ("/agent", "new", json!(1)),
        ("/workflow/steps/0", "new", json!(1)),
        ("/task", "new", json!(1)),
        ("", "schema", json!("wp-codebox/cluster-task/v2")),
        (
            "/task",
            "staged_files",
            json!([{"source": "/etc/shadow", "target": "/tmp/a"}]),
        ),
        (
            "/workflow",
            "staged",
            json!([{"source": "/etc/shadow", "target": "/tmp/a"}]),
        ),
        ("/mounts/0", "git", json!("history")),
        ("/mounts/2", "source", json!({"file": "../../etc/shadow"})),
        ("/mounts/2", "source", json!({"file": ""})),
        ("/staged/0", "name", json!("/etc/shadow")),
        ("/agent_bundles/0", "file", json!("..")),
        ("/provenance", "cluster", json!({"epoch": 1})),
    ] {
        let mut changed = base.clone();
        changed.pointer_mut(pointer).unwrap()[key] = value;
        judged(changed.to_string().as_bytes());
    }
    // Spaces and repeated members.
    judged([&good[..], b" "].concat().as_slice());
    let text = String::from_utf8(good).unwrap();
    judged(text.replacen('{', "{\"redact\":0,", 1).as_bytes());
    judged(b"{");
}

#[test]
fn task_is_stored_once_under_its_digest_and_read_back() {
    let objects = MemoryObjects::default();
    let (task, ..) = built(full_request()).unwrap();
    let digest = task.put(&objects).unwrap();
    assert_eq!(objects.take_puts(), [format!("task.{digest}")]);
    task.put(&objects).unwrap();
    assert_eq!(objects.take_puts().len(), 0);
    assert_eq!(ClusterTask::fetch(&objects, &digest).unwrap(), task);
    let missing = ClusterTask::fetch(&objects, &sha256(b"x")).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::ClusterMissing);
    let large = vec![b' '; MAX_TASK_BYTES as usize + 1];
    objects
        .lock()
        .insert(format!("task.{}", sha256(&large)), large.clone());
    let error = ClusterTask::fetch(&objects, &sha256(&large)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterUnreadable);
    let mut task = minimal_task(&sha256(b"l"));
    task.checks = vec!["x".repeat(MAX_TASK_BYTES as usize)];
    assert_eq!(
        task.put(&objects).unwrap_err().code(),
        ErrorCode::ClusterObjectTooLarge
    );
}

mod uploads;

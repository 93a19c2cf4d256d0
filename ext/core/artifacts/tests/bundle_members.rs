//! Tests the files of a bundle, content that a bundle must not contain, and failed writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod namespaces;
mod trees;

use bundles::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use trees::{Random, Tree, read_bytes, scratch};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;

const SECRET: &str = "hunter2-hunter2";

fn file(text: &str) -> Node {
    Node::File {
        mode: FileMode::Regular,
        bytes: text.as_bytes().to_vec(),
    }
}

fn changes(before: &[(&str, &str)], after: &[(&str, &str)]) -> MountChanges {
    let tree = |rows: &[(&str, &str)]| -> Tree {
        rows.iter()
            .map(|(p, t)| (p.as_bytes().to_vec(), file(t)))
            .collect()
    };
    let work = scratch();
    captured(work.path(), &tree(before), &tree(after), &mut Random(7))
}

fn one_change() -> MountChanges {
    changes(
        &[("a.php", "1\n"), ("gone", "x\n")],
        &[("a.php", "2\n"), ("tests/XTest.php", "t\n")],
    )
}

fn members(bundle: &Path) -> BTreeSet<String> {
    read_bytes(bundle)
        .into_keys()
        .map(|p| p.to_str().unwrap().to_owned())
        .collect()
}

fn read(bundle: &Path, member: &str) -> Value {
    serde_json::from_slice(&fs::read(bundle.join(member)).unwrap()).unwrap()
}

fn write(
    parent: &Path,
    inputs: &BundleInputs,
    secrets: &[&str],
) -> Result<WrittenBundle, BundleError> {
    let secrets: Vec<String> = secrets.iter().map(|s| (*s).to_owned()).collect();
    write_bundle(
        &Dir::open(parent).unwrap(),
        &run_id(1),
        inputs,
        &Redactor::new(&secrets),
        BundleSigner::Unsigned,
    )
}

#[test]
fn bundle_contains_every_required_member() {
    let host = Host::new();
    let mut made = inputs(vec![
        mount(0, "p", Some(one_change())),
        mount(1, "ro", None),
    ]);
    made.completion_outcome = Some(object(json!({
        "status": "succeeded", "summary": "ok", "provenance": {"task": {"goal": "x"}}})));
    made.agent_result = Some(object(json!({"status": "completed", "actionable": true})));
    made.transcript = Some(json!({"schema": schema_id::AGENT_TRANSCRIPT, "executions": []}));
    let (path, written) = host.write(5, &made);
    let expected: BTreeSet<String> = [
        "manifest.json",
        "metadata.json",
        "blueprint.after.json",
        "events.jsonl",
        "commands.jsonl",
        "observations.jsonl",
        "logs/runtime.log",
        "logs/commands.log",
        "files/mounts.jsonl",
        "files/mounted-files.json",
        "files/diffs.json",
        "files/changed-files.json",
        "files/patch.diff",
        "files/review.json",
        "files/test-results.json",
        "files/runtime-reference-manifest.json",
        "files/runtime-replay-index.json",
        "files/attestation.dsse.json",
        "files/completion-outcome.json",
        "files/agent-result.json",
        "files/transcript.json",
        "files/diffs/mount-0.patch",
        "files/mounts/0/a.php",
        "files/mounts/0/tests/XTest.php",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(members(&path), expected);
    let verification = host.verify(&path);
    assert!(verification.valid, "{:?}", verification.violations);
    assert_eq!(
        verification.manifest_sha256.as_ref(),
        Some(&written.manifest_sha256)
    );
    assert_eq!(
        verification.signature.status,
        SignatureStatus::SignedByThisHost
    );

    let manifest = fs::read(path.join("manifest.json")).unwrap();
    assert!(manifest.is_ascii());
    assert!(!String::from_utf8(manifest).unwrap().contains("{}"));
    let outcome = read(&path, "files/completion-outcome.json");
    assert_eq!(outcome, written.completion_outcome);
    assert_eq!(outcome["schema"], schema_id::COMPLETION_OUTCOME);
    assert_eq!(
        outcome["provenance"]["artifactBundleId"],
        written.id.as_str()
    );
    assert_eq!(outcome["provenance"]["artifactDirectory"], ".");
    assert_eq!(outcome["provenance"]["task"]["goal"], "x");
    assert_eq!(outcome["changedFiles"]["count"], 3);
    assert_eq!(read(&path, "files/agent-result.json"), written.agent_result);
    let review = read(&path, "files/review.json");
    assert_eq!(
        review["stats"],
        json!({"added": 1, "modified": 1, "deleted": 1, "total": 3})
    );
    assert_eq!(review["approval"], json!({"approvable": true}));
    let flags = review["riskFlags"].to_string();
    assert!(
        flags.contains("changed-test-file:/wordpress/wp-content/plugins/p/tests/XTest.php"),
        "{flags}"
    );
    let metadata = read(&path, "metadata.json");
    assert_eq!(metadata["id"], written.id.as_str());
    for (_, listed) in metadata["artifacts"].as_object().unwrap() {
        assert!(expected.contains(listed.as_str().unwrap()));
    }
    assert_eq!(
        fs::read_to_string(path.join("files/patch.diff"))
            .unwrap()
            .matches("diff --git")
            .count(),
        3
    );
    assert!(
        fs::read_to_string(path.join("files/mounts.jsonl"))
            .unwrap()
            .lines()
            .count()
            == 2
    );
}

#[test]
fn review_flags_changed_files_whose_names_make_servers_or_wordpress_run_code() {
    let tree = |rows: &[(&[u8], Node)]| -> Tree {
        let rows = rows.iter();
        rows.map(|(path, node)| (path.to_vec(), node.clone()))
            .collect()
    };
    let link = Node::Symlink {
        target: b"lib".to_vec(),
    };
    let work = scratch();
    let changes = captured(
        work.path(),
        &tree(&[(b"web.config", file("x\n")), (b"kept.php", file("1\n"))]),
        &tree(&[
            (b".htaccess", file("php_value x\n")),
            (b"\xff/.user.ini", file("x\n")),
            (b"lib/tool.phar", file("x\n")),
            (b"mu-plugins", link),
            (b"object-cache.php", file("<?php\n")),
            (b"kept.php", file("2\n")),
            (b"db.php", file("<?php\n")),
            (b"tests/\xff.php", file("<?php\n")),
        ]),
        &mut Random(7),
    );
    let host = Host::new();
    let (path, _) = host.write(5, &inputs(vec![mount(0, "p", Some(changes))]));
    let at = "/wordpress/wp-content/plugins/p";
    let flags: BTreeSet<String> =
        serde_json::from_value(read(&path, "files/review.json")["riskFlags"].clone()).unwrap();
    let expected = [
        format!("server-configuration:{at}/.htaccess"),
        format!("server-configuration:{at}/web.config"),
        format!("server-configuration:\"{at}/\\377/.user.ini\""),
        format!("executable-archive:{at}/lib/tool.phar"),
        format!("must-use-plugin:{at}/mu-plugins"),
        format!("symlink:{at}/mu-plugins"),
        format!("drop-in:{at}/object-cache.php"),
        format!("changed-test-file:\"{at}/tests/\\377.php\""),
    ];
    assert_eq!(flags, expected.into());
}

#[test]
fn equal_file_names_in_several_mounts_do_not_collide_in_the_bundle() {
    let host = Host::new();
    let made = inputs(vec![
        mount(0, "one", Some(one_change())),
        mount(1, "two", Some(one_change())),
    ]);
    let (path, written) = host.write(6, &made);
    assert!(host.verify(&path).valid);
    let patch = fs::read_to_string(path.join("files/patch.diff")).unwrap();
    assert!(patch.contains("diff --git a/wordpress/wp-content/plugins/one/a.php b/"));
    assert!(patch.contains("diff --git a/wordpress/wp-content/plugins/two/a.php b/"));
    let own = fs::read_to_string(path.join("files/diffs/mount-1.patch")).unwrap();
    assert!(own.starts_with("diff --git a/a.php b/a.php\n"));
    let names: Vec<&str> = written
        .changed_files
        .iter()
        .map(|f| f.patch_name.as_str())
        .collect();
    assert_eq!(names[0], "wordpress/wp-content/plugins/one/a.php");
    assert_eq!(
        written.changed_files[3].path,
        "/wordpress/wp-content/plugins/two/a.php"
    );
    assert_eq!(
        written.changed_files[3].patch_path,
        "files/diffs/mount-1.patch"
    );
}

#[test]
fn secrets_in_free_text_of_a_bundle_are_redacted() {
    let parent = scratch();
    let mut made = inputs(vec![mount(0, "p", Some(one_change()))]);
    let leak = format!("token {SECRET} end");
    made.summary = leak.clone();
    let mut detail = RunSummary::new(SummaryCode::Failed);
    detail.args.reason = Some(leak.clone());
    made.summary_detail = Some(detail);
    made.task = Some(json!({"goal": leak, SECRET: 1}));
    made.provenance = object(json!({"note": leak}));
    made.spec = object(json!({"note": leak}));
    made.observations = vec![json!({"data": [leak]})];
    made.events.push(LifecycleEvent {
        id: "evt-2".to_owned(),
        seq: 2,
        kind: EventType::CommandOutput,
        timestamp: TIME.to_owned(),
        execution_id: None,
        data: object(json!({"stream": "stdout", "text": leak})),
    });
    made.events.push(LifecycleEvent {
        kind: EventType::Observed,
        data: object(json!({"text": leak})),
        ..made.events[1].clone()
    });
    made.checks = vec![CheckReport {
        command: leak.clone(),
        exit_code: None,
        status: wp_codebox_contracts::CheckStatus::Error,
        output_tail: leak.clone(),
        duration_ms: 1,
        reason: None,
        tests: None,
    }];
    made.commands = vec![ExecutionRecord {
        id: "exec-1".to_owned(),
        command: "c".to_owned(),
        args: vec![leak.clone()],
        exit_code: None,
        stdout: leak.clone(),
        stderr: leak.clone(),
        started_at: TIME.to_owned(),
        finished_at: TIME.to_owned(),
        phase: "agent".to_owned(),
        output_truncated: false,
    }];
    made.completion_outcome = Some(object(json!({"summary": leak})));
    made.agent_result = Some(object(json!({"summary": leak})));
    made.transcript = Some(json!([leak]));
    made.mounts[0].metadata = Some(object(json!({"note": leak})));
    made.approvable = Approvable::No {
        code: ErrorCode::BaselineChanged,
        reason: leak.clone(),
    };
    // Control: if the value is not registered as a secret, many files of the bundle contain it.
    write(parent.path(), &made, &[]).unwrap();
    let path = parent.path().join(run_id(1).as_str());
    let leaking = |path: &Path| -> BTreeSet<String> {
        let files = read_bytes(path).into_iter();
        files
            .filter(|(_, bytes)| bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()))
            .map(|(p, _)| p.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(leaking(&path).len(), 12, "{:?}", leaking(&path));
    fs::remove_dir_all(&path).unwrap();
    let written = write(parent.path(), &made, &[SECRET]).unwrap();
    assert_eq!(leaking(&path), BTreeSet::new());
    assert!(!format!("{written:?}").contains(SECRET));
    assert!(
        read(&path, "files/review.json")["riskFlags"]
            .to_string()
            .contains("secrets-redacted")
    );
    assert!(verify_bundle(&Dir::open(&path).unwrap(), &VerifyOptions::default()).valid);
}

#[test]
fn secret_in_the_patch_of_a_bundle_is_an_error() {
    let parent = scratch();
    let with = |text: &str| {
        inputs(vec![mount(
            0,
            "p",
            Some(changes(&[("k.php", "1\n2\n")], &[("k.php", text)])),
        )])
    };
    let leak = format!("1\n2\n$k = '{SECRET}';\n");
    let error = write(parent.path(), &with(&leak), &[SECRET]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SecretInPatch);
    let text = error.to_string();
    assert!(
        text.contains("/wordpress/wp-content/plugins/p/k.php") && text.contains("line 3"),
        "{text}"
    );
    assert!(!text.contains(SECRET));
    let named = changes(&[], &[(&format!("{SECRET}.txt"), "x\n")]);
    let named = inputs(vec![mount(0, "p", Some(named))]);
    let text = write(parent.path(), &named, &[SECRET])
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("the path \"/wordpress/wp-content/plugins/p/") && !text.contains(SECRET),
        "{text}"
    );
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    assert!(write(parent.path(), &with("1\n2\nharmless\n"), &[SECRET]).is_ok());
}

#[test]
fn file_with_a_secret_outside_the_hunks_of_the_patch_is_not_copied_into_the_bundle() {
    let parent = scratch();
    let text = |last: &str| format!("{SECRET}\n{}{last}\n", "x\n".repeat(30));
    let set = changes(&[("config.php", &text("a"))], &[("config.php", &text("b"))]);
    write(
        parent.path(),
        &inputs(vec![mount(0, "p", Some(set))]),
        &[SECRET],
    )
    .unwrap();
    let path = parent.path().join(run_id(1).as_str());
    for (member, bytes) in read_bytes(&path) {
        assert!(
            !bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()),
            "{member:?}"
        );
    }
    assert_eq!(
        read(&path, "files/mounted-files.json")["skipped"][0]["reason"],
        "contains-secret"
    );
}

#[test]
fn run_with_any_outcome_gets_a_valid_bundle_that_states_its_outcome() {
    let host = Host::new();
    for (number, outcome) in Outcome::ALL.iter().enumerate() {
        let mut made = inputs(Vec::new());
        made.outcome = *outcome;
        made.approvable = Approvable::No {
            code: ErrorCode::RunTimeout,
            reason: "It took too long.".to_owned(),
        };
        let (path, _) = host.write(number as u64, &made);
        assert!(host.verify(&path).valid);
        let review = read(&path, "files/review.json");
        assert_eq!(review["outcome"], outcome.as_str());
        assert_eq!(review["approval"]["code"], "wp_codebox_run_timeout");
        let failed = !outcome.is_success() && *outcome != Outcome::Partial;
        assert_eq!(review["failed"], failed);
    }
    let (path, _) = host.write(99, &inputs(Vec::new()));
    assert_eq!(fs::read(path.join("files/patch.diff")).unwrap(), b"");
    assert_eq!(
        read(&path, "files/review.json")["approval"]["approvable"],
        false
    );
}

#[test]
fn bundle_lists_omitted_entries_and_files_with_unusual_names() {
    let host = Host::new();
    let work = scratch();
    let mut after = Tree::new();
    after.insert(
        b"\xff.bin".to_vec(),
        Node::File {
            mode: FileMode::Executable,
            bytes: vec![0, 1],
        },
    );
    after.insert("a b/é.txt".as_bytes().to_vec(), file("x\n"));
    after.insert(
        [b"n".repeat(200), b"\n".repeat(50)].concat(),
        file("long\n"),
    );
    let mut set = captured(work.path(), &Tree::new(), &after, &mut Random(1));
    set.omitted.push(Omitted {
        path: b"out".to_vec(),
        reason: OmitReason::AbsoluteSymlink,
    });
    let (path, written) = host.write(1, &inputs(vec![mount(0, "p", Some(set))]));
    assert!(host.verify(&path).valid);
    assert!(members(&path).contains("files/mounts/0/%FF.bin"));
    assert!(members(&path).contains("files/mounts/0/a%20b/%C3%A9.txt"));
    assert!(fs::read(path.join("manifest.json")).unwrap().is_ascii());
    assert_eq!(
        read(&path, "files/mounted-files.json")["skipped"][0]["reason"],
        "name-too-long"
    );
    let odd = written.changed_files.iter().find(|f| f.binary).unwrap();
    assert_eq!(odd.path, "\"/wordpress/wp-content/plugins/p/\\377.bin\"");
    assert_eq!(odd.path_encoding.as_deref(), Some("git-quoted"));
    assert_eq!(written.notices.len(), 2);
    assert!(
        fs::read_to_string(path.join("files/mounts.jsonl"))
            .unwrap()
            .contains("symlink-absolute")
    );
}

#[test]
fn second_bundle_of_a_run_and_bundle_with_a_non_ascii_manifest_are_refused() {
    let parent = scratch();
    let made = inputs(Vec::new());
    write(parent.path(), &made, &[]).unwrap();
    let before = read_bytes(parent.path());
    let error = write(parent.path(), &made, &[]).unwrap_err();
    assert!(matches!(error, BundleError::Exists));
    assert_eq!(read_bytes(parent.path()), before);
    let mut other = inputs(Vec::new());
    other.runtime.backend = "ä".to_owned();
    fs::remove_dir_all(parent.path().join(run_id(1).as_str())).unwrap();
    assert!(matches!(
        write(parent.path(), &other, &[]),
        Err(BundleError::NotAscii)
    ));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn full_disk_leaves_no_partial_bundle() {
    if !namespaces::entered("full_disk_leaves_no_partial_bundle", "userns") {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    namespaces::mount("tmpfs", "size=4m,mode=700", parent.path());
    let text: String = (0..150_000).map(|i| format!("{i:040}\n")).collect();
    let set = MountChanges {
        entries: vec![EntryChange {
            path: b"big".to_vec(),
            change: Change::Added(file(&text)),
        }],
        ..MountChanges::default()
    };
    let error = write(parent.path(), &inputs(vec![mount(0, "p", Some(set))]), &[]).unwrap_err();
    assert!(matches!(error, BundleError::NoSpace), "{error}");
    assert_eq!(error.code(), ErrorCode::BundleWriteFailed);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    write(parent.path(), &inputs(Vec::new()), &[]).unwrap();
}

/// PHP decodes an empty JSON object to an empty array and encodes that as `[]`.
#[test]
fn json_documents_of_a_bundle_contain_no_empty_objects() {
    fn empties(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if members.is_empty() {
                    found.push(at.clone());
                }
                members
                    .iter()
                    .for_each(|(k, v)| empties(v, format!("{at}.{k}"), found));
            }
            Value::Array(items) => items
                .iter()
                .for_each(|v| empties(v, format!("{at}[]"), found)),
            _ => {}
        }
    }
    let host = Host::new();
    let mut made = inputs(vec![mount(0, "p", Some(one_change()))]);
    made.mounts[0].metadata = Some(Map::new());
    let (path, _) = host.write(3, &made);
    for (member, bytes) in read_bytes(&path) {
        if member.extension().is_some_and(|e| e == "json") {
            let mut found = Vec::new();
            empties(
                &serde_json::from_slice(&bytes).unwrap(),
                member.display().to_string(),
                &mut found,
            );
            assert_eq!(found, Vec::<String>::new());
        }
    }
}

//! Tests that fixed inputs give exactly the recorded bundle, including its digests and signature.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
#[path = "../../../../tests/golden/compare.rs"]
mod golden;
mod trees;

use bundles::*;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use trees::{Random, Tree, read_bytes, scratch};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;

fn tree(rows: &[(&str, FileMode, &[u8])]) -> Tree {
    rows.iter()
        .map(|(path, mode, bytes)| {
            let (mode, bytes) = (*mode, bytes.to_vec());
            (path.as_bytes().to_vec(), Node::File { mode, bytes })
        })
        .collect()
}

fn fixed_inputs() -> BundleInputs {
    use FileMode::{Executable, Regular};
    let before = tree(&[
        ("a.php", Regular, b"<?php\necho 1;\n"),
        ("gone", Regular, b"x\n"),
        ("old.txt", Regular, b"one\ntwo\nthree\nfour\n"),
        ("run.sh", Regular, b"true\n"),
    ]);
    let after = tree(&[
        ("a.php", Regular, b"<?php\necho 2;"),
        ("image", Regular, b"\0\x01\xff"),
        ("new.txt", Regular, b"one\ntwo\nthree\nfive\n"),
        ("run.sh", Executable, b"true\n"),
        ("tests/ü b.php", Regular, b"t\n"),
    ]);
    let work = scratch();
    let changes = captured(work.path(), &before, &after, &mut Random(7));
    let mut made = inputs(vec![mount(0, "p", Some(changes)), mount(1, "ro", None)]);
    made.renames = RenameMode::Detect;
    made.completion_outcome = Some(object(json!({
        "status": "succeeded", "summary": "ok", "provenance": {"task": {"goal": "x"}}})));
    made.agent_result = Some(object(json!({"status": "completed", "actionable": true})));
    made.transcript = Some(json!({"schema": schema_id::AGENT_TRANSCRIPT, "executions": []}));
    made.preview = Some(json!({"schema": "wp-codebox/preview/v1", "status": "closed"}));
    made.observations
        .push(json!({"type": "mounts", "data": {"count": 2}}));
    made.checks.push(CheckReport {
        command: "php check.php".to_owned(),
        exit_code: Some(1),
        status: CheckStatus::Failed,
        output_tail: "no".to_owned(),
        duration_ms: 12,
        reason: None,
        tests: None,
    });
    made.commands.push(ExecutionRecord {
        id: "exec-1".to_owned(),
        command: "wordpress.run-php".to_owned(),
        args: vec!["code=echo 1;".to_owned()],
        exit_code: Some(0),
        stdout: "1\n".to_owned(),
        stderr: String::new(),
        started_at: TIME.to_owned(),
        finished_at: TIME.to_owned(),
        phase: "workflow".to_owned(),
        output_truncated: false,
    });
    made.evidence.push(EvidenceDocument {
        name: "notes.jsonl",
        key: "notes",
        kind: "notes",
        values: vec![json!({"n": 0.1}), json!({"n": 2})],
    });
    made.files.push(ArtifactFile {
        path: "browser/shot.png".to_owned(),
        kind: "browser-screenshot",
        media: "image/png",
        content: ArtifactContent::Bytes(vec![1, 2, 3]),
    });
    made
}

#[test]
fn bundle_of_fixed_inputs_matches_recorded_bundle() {
    // Ed25519 signatures are deterministic, so a fixed key gives a fixed attestation.
    let state = scratch();
    let keys = state.path().join("keys");
    fs::DirBuilder::new().mode(0o700).create(&keys).unwrap();
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(keys.join("host.ed25519"));
    std::io::Write::write_all(file.as_mut().unwrap(), &[7; 32]).unwrap();
    let key = HostKey::load(&Dir::open(state.path()).unwrap()).unwrap();
    let host = Host { state, key };

    let (path, written) = host.write(5, &fixed_inputs());
    let verification = host.verify(&path);
    assert!(verification.valid, "{:?}", verification.violations);
    let mut list = format!("manifest {}\n", written.manifest_sha256);
    for (name, bytes) in read_bytes(&path) {
        writeln!(list, "{} {}", sha256(&bytes), name.display()).unwrap();
    }
    golden::compare("bundle.sha256", &list);
    golden::compare(
        "bundle-manifest.json",
        &fs::read_to_string(path.join("manifest.json")).unwrap(),
    );
}

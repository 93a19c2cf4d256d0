//! Follow-up runs: the whole change of a bundle is read, laid over the source, and compared with a
//! later change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;

use bundles::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use trees::*;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;

const TARGET: &str = "/wordpress/wp-content/plugins/p0";

fn file(text: &str) -> Node {
    Node::File {
        mode: FileMode::Regular,
        bytes: text.as_bytes().to_vec(),
    }
}

fn tree(rows: &[(&str, &str)]) -> Tree {
    rows.iter()
        .map(|(path, text)| (path.as_bytes().to_vec(), file(text)))
        .collect()
}

fn change(before: &Tree, after: &Tree) -> MountChanges {
    captured(scratch().path(), before, after, &mut Random(11))
}

fn whole(host: &Host, bundle: &Path) -> Result<WholeBundle, PreflightError> {
    whole_bundle(Dir::open(bundle).unwrap(), host.key.public_keys())
}

fn at(source: &Path) -> BTreeMap<String, std::path::PathBuf> {
    BTreeMap::from([(TARGET.to_owned(), source.to_owned())])
}

fn open(path: &Path) -> Dir {
    fs::create_dir_all(path).unwrap();
    Dir::open(path).unwrap()
}

/// Returns path, old and new state of each changed file and link. Directories are left out, because
/// a patch cannot represent them.
fn carried(changes: &MountChanges) -> Vec<(&[u8], Option<&Node>, Option<&Node>)> {
    let is_file = |node: &&Node| **node != Node::Directory;
    let rows = changes.entries.iter().map(|entry| {
        let before = entry.change.before().filter(is_file);
        let after = entry.change.after().filter(is_file);
        (entry.path.as_slice(), before, after)
    });
    rows.filter(|(_, before, after)| before != after).collect()
}

#[test]
fn changes_read_from_a_bundle_equal_the_captured_ones_and_merge_with_those_of_a_second_run() {
    let mut files = 0;
    for number in 0..150_u64 {
        let random = &mut Random(number ^ 0xf0_110e);
        let before = baseline(random);
        let after = edit(random, &before);
        let later = edit(random, &after);
        let work = scratch();
        let earlier = captured(work.path(), &before, &after, random);
        let host = Host::new();
        let (bundle, _) = host.write(number, &inputs(vec![mount(0, "p0", Some(earlier.clone()))]));
        let source = work.path().join("source");
        write_tree(&source, &before);

        let found = whole(&host, &bundle)
            .unwrap()
            .changes(&at(&source))
            .unwrap();
        let mut found = found.into_values().next().unwrap_or_default();
        assert_eq!(found.entries, earlier.entries, "case {number}");
        found.removed_directories =
            find_removed_directories(&found.entries, open(&source).as_fd()).unwrap();
        // The capture also lists deleted directories that were empty before the run.
        // `find_removed_directories` does not, because `entries` lists these.
        let mut removed = earlier.removed_directories.clone();
        removed.retain(|path| !earlier.entries.iter().any(|entry| entry.path == *path));
        assert_eq!(found.removed_directories, removed, "case {number}");

        // Merges the layer with the upper directory of a second run. The result contains the
        // changes of both runs.
        let (layer, upper, merged) = (
            open(&work.path().join("layer")),
            work.path().join("upper-2"),
            open(&work.path().join("merged")),
        );
        write_layer(&found, layer.as_fd()).unwrap();
        write_upper(&upper, &after, &later, random);
        let limits = CaptureLimits::TREE;
        let upper = open(&upper);
        snapshot_layer(upper.as_fd(), Some(layer.as_fd()), merged.as_fd(), &limits).unwrap();
        let both = capture(
            open(&source).as_fd(),
            merged.as_fd(),
            &ExcludeRules::default(),
            &CaptureLimits::default(),
        )
        .unwrap();
        let expected = captured(&work.path().join("both"), &before, &later, random);
        assert_eq!(both.entries, expected.entries, "case {number}");

        let since = changes_since(&earlier, &both);
        let expected = captured(&work.path().join("since"), &after, &later, random);
        assert_eq!(carried(&since), carried(&expected), "case {number}");

        apply_layer(layer.as_fd(), open(&source).as_fd()).unwrap();
        assert_eq!(read_tree(&source), after, "case {number}");
        files += earlier.entries.len();
    }
    assert!(files > 200, "{files}");
}

#[test]
fn source_that_differs_from_the_baseline_of_a_bundle_is_a_conflict_that_names_each_file() {
    let before = tree(&[
        ("a.php", "1\n"),
        ("b.php", "1\n"),
        ("gone", "1\n"),
        ("other", "1\n"),
    ]);
    let after = tree(&[
        ("a.php", "2\n"),
        ("b.php", "2\n"),
        ("new/c.php", "n\n"),
        ("other", "1\n"),
    ]);
    let host = Host::new();
    let change = change(&before, &after);
    let (bundle, _) = host.write(1, &inputs(vec![mount(0, "p0", Some(change))]));
    let conflicts = |edit: &dyn Fn(&Path)| -> Vec<(String, &'static str)> {
        let source = scratch();
        write_tree(source.path(), &before);
        edit(source.path());
        let unnamed = whole(&host, &bundle).unwrap().changes(&BTreeMap::new());
        assert_eq!(unnamed.unwrap_err().code(), ErrorCode::ApplyTargetMismatch);
        match whole(&host, &bundle).unwrap().changes(&at(source.path())) {
            Ok(_) => Vec::new(),
            Err(PreflightError::Conflict { conflicts, .. }) => conflicts
                .into_iter()
                .map(|c| {
                    (
                        c.path.strip_prefix(TARGET).unwrap()[1..].to_owned(),
                        c.reason,
                    )
                })
                .collect(),
            Err(other) => panic!("{other}"),
        }
    };
    let write = |name: &'static str| move |root: &Path| fs::write(root.join(name), "x").unwrap();
    assert_eq!(conflicts(&|_| {}), []);
    assert_eq!(conflicts(&write("other")), []);
    assert_eq!(
        conflicts(&|root: &Path| {
            write("a.php")(root);
            fs::remove_file(root.join("gone")).unwrap();
            fs::create_dir(root.join("new")).unwrap();
            write("new/c.php")(root);
        }),
        [
            ("a.php".to_owned(), "other contents"),
            ("gone".to_owned(), "missing"),
            ("new/c.php".to_owned(), "exists already"),
        ]
    );
    let executable = |root: &Path| {
        fs::set_permissions(root.join("a.php"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    assert_eq!(
        conflicts(&executable),
        [("a.php".to_owned(), "another mode")]
    );
}

#[test]
fn follow_up_of_a_bundle_that_is_unsigned_tampered_unapprovable_or_of_another_host_is_refused() {
    let (before, after) = (tree(&[("a.php", "1\n")]), tree(&[("a.php", "2\n")]));
    let usual = || inputs(vec![mount(0, "p0", Some(change(&before, &after)))]);
    let host = Host::new();
    let code = |bundle: &Path| whole(&host, bundle).err().map(|error| error.code());
    let (bundle, _) = host.write(1, &usual());
    assert_eq!(code(&bundle), None);
    let mut failed = usual();
    failed.outcome = Outcome::Failed;
    let (bundle, _) = host.write(2, &failed);
    assert_eq!(code(&bundle), None);
    let (bundle, _) = host.write(
        3,
        &inputs(vec![mount(0, "p0", Some(MountChanges::default()))]),
    );
    assert_eq!(code(&bundle), None, "a run without changes");

    let other = Host::new();
    let (foreign, _) = other.write(4, &usual());
    assert_eq!(code(&foreign), Some(ErrorCode::ArtifactUntrusted));
    let parent = scratch();
    write_bundle(
        &Dir::open(parent.path()).unwrap(),
        &run_id(5),
        &usual(),
        &Redactor::new(&[]),
        BundleSigner::Unsigned,
    )
    .unwrap();
    let unsigned = parent.path().join(run_id(5).as_str());
    assert_eq!(code(&unsigned), Some(ErrorCode::ArtifactUntrusted));

    let (tampered, _) = host.write(6, &usual());
    let patch = tampered.join("files/diffs/mount-0.patch");
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("+2", "+3")).unwrap();
    assert_eq!(code(&tampered), Some(ErrorCode::ArtifactVerificationFailed));

    for (number, blocked) in [ErrorCode::SecretInPatch, ErrorCode::RunnerUnavailable]
        .into_iter()
        .enumerate()
    {
        let mut made = usual();
        made.approvable = Approvable::No {
            code: blocked,
            reason: "no".to_owned(),
        };
        let (bundle, _) = host.write(7 + number as u64, &made);
        assert_eq!(code(&bundle), Some(blocked));
        // Such a bundle is also refused if it has no changes: a run whose changes contain a secret
        // gets a bundle without them.
        made.mounts = vec![mount(0, "p0", Some(MountChanges::default()))];
        let (bundle, _) = host.write(17 + number as u64, &made);
        assert_eq!(code(&bundle), Some(blocked));
    }
}

#[test]
fn document_of_a_bundle_is_refused_once_its_hash_differs_from_the_manifest() {
    let host = Host::new();
    let mut made = inputs(vec![mount(0, "p0", None)]);
    made.transcript = Some(json!({"schema": schema_id::AGENT_TRANSCRIPT, "executions": []}));
    let (path, _) = host.write(1, &made);
    let bundle = whole(&host, &path).unwrap();
    let member = "files/transcript.json";
    assert!(bundle.document(member).unwrap().is_some());
    assert_eq!(bundle.document("files/unlisted.json").unwrap(), None);
    fs::write(path.join(member), "{}").unwrap();
    assert!(bundle.document(member).is_err());
}

fn follow_up(earlier: &WrittenBundle, since: MountChanges) -> FollowUpInputs {
    FollowUpInputs {
        record: FollowUpRecord {
            schema: schema_id::FOLLOW_UP.to_owned(),
            artifact_id: earlier.id.to_string(),
            run_id: run_id(1),
            manifest_sha256: earlier.manifest_sha256.clone(),
            comments: vec![ReviewComment {
                path: Some(format!("{TARGET}/a.php")),
                line: Some(1),
                body: "use hunter2-hunter2 here".to_owned(),
            }],
            chain: vec![run_id(1)],
            used: ModelUsage {
                turns: 3,
                ..ModelUsage::default()
            },
            changed_files: Vec::new(),
        },
        since: BTreeMap::from([(0, since)]),
    }
}

#[test]
fn bundle_of_a_follow_up_has_the_patch_since_the_earlier_bundle_and_verifies() {
    let before = tree(&[("a.php", "1\n")]);
    let first = tree(&[("a.php", "2\n"), ("b.php", "b\n")]);
    let second = tree(&[("a.php", "2\n"), ("b.php", "c\n"), ("c.php", "c\n")]);
    let (earlier, now) = (change(&before, &first), change(&before, &second));
    let host = Host::new();
    let (_, written) = host.write(1, &inputs(vec![mount(0, "p0", Some(earlier.clone()))]));
    let mut made = inputs(vec![mount(0, "p0", Some(now.clone()))]);
    made.follow_up = Some(follow_up(&written, changes_since(&earlier, &now)));
    let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
    let signer = BundleSigner::Host(&host.key);
    let parent = Dir::open(host.state.path()).unwrap();
    write_bundle(&parent, &run_id(2), &made, &redactor, signer).unwrap();
    let bundle = host.state.path().join(run_id(2).as_str());
    let verification = host.verify(&bundle);
    assert!(verification.valid, "{:?}", verification.violations);
    let record: Value =
        serde_json::from_slice(&fs::read(bundle.join(FollowUpRecord::PATH)).unwrap()).unwrap();
    let body = record["comments"][0]["body"].as_str().unwrap();
    assert!(body.starts_with("use [REDACTED"), "{body}");
    assert_eq!(record["used"]["turns"], 3);
    let rows: Vec<_> = record["changedFiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["relativePath"].as_str().unwrap(),
                row["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(rows, [("b.php", "modified"), ("c.php", "added")]);

    // The patch turns the result of the first run into the result of the second run.
    let work = scratch();
    write_tree(work.path(), &first);
    let patch = bundle.join(FollowUpRecord::PATCH_PATH);
    let applied = Command::new("git")
        .args(["apply", "-p1"])
        .arg(&patch)
        .current_dir(work.path())
        .status();
    assert!(applied.unwrap().success());
    assert_eq!(read_tree(work.path()), second);
}

#[test]
fn bundle_with_a_secret_only_in_its_patch_since_the_earlier_bundle_is_refused() {
    let before = tree(&[("a.php", "1\n")]);
    let first = tree(&[("a.php", "key = hunter2-hunter2\n")]);
    let (earlier, now) = (change(&before, &first), change(&before, &before));
    let host = Host::new();
    let (_, written) = host.write(1, &inputs(vec![mount(0, "p0", Some(earlier.clone()))]));
    let mut made = inputs(vec![mount(0, "p0", Some(now.clone()))]);
    made.follow_up = Some(follow_up(&written, changes_since(&earlier, &now)));
    let write = |secrets: &[String]| {
        let parent = scratch();
        write_bundle(
            &Dir::open(parent.path()).unwrap(),
            &run_id(2),
            &made,
            &Redactor::new(secrets),
            BundleSigner::Unsigned,
        )
    };
    assert!(write(&[]).is_ok());
    let refused = write(&["hunter2-hunter2".to_owned()]).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::SecretInPatch);
}

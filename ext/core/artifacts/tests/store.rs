//! Tests that a site's bundles, even damaged ones, are listed, found by each kind of id, and
//! deleted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;

use bundles::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use trees::{Random, scratch};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;

struct Site {
    state: tempfile::TempDir,
    store: Store,
}

impl Site {
    fn new() -> Self {
        let state = scratch();
        let dir = Dir::open(state.path()).unwrap();
        let store = Store::open(&dir, &SiteId::new("site-1").unwrap()).unwrap();
        Self { state, store }
    }
    fn path(&self) -> PathBuf {
        self.state.path().join("sites/site-1/artifacts")
    }
    fn write(&self, run: u64, created_at: &str, seed: u64) -> WrittenBundle {
        let work = scratch();
        let random = &mut Random(seed);
        let before = trees::baseline(random);
        let mut after = before.clone();
        if seed > 0 {
            after.insert(
                format!("seed-{seed}").into_bytes(),
                Node::Symlink {
                    target: b"x".to_vec(),
                },
            );
        }
        let changes = captured(work.path(), &before, &trees::normalised(after), random);
        let mut made = inputs(vec![mount(0, "p", Some(changes))]);
        made.created_at = created_at.to_owned();
        let signer = BundleSigner::Unsigned;
        write_bundle(
            self.store.directory(),
            &run_id(run),
            &made,
            &Redactor::new(&[]),
            signer,
        )
        .unwrap()
    }
    fn code(&self, reference: &str) -> ErrorCode {
        self.store.resolve(reference).unwrap_err().code()
    }
}

#[test]
fn bundles_are_listed_and_found_by_id_or_prefix() {
    let site = Site::new();
    assert_eq!(site.store.list().unwrap(), []);
    let first = site.write(0xa1, "2026-01-01T00:00:00.000Z", 1);
    site.write(0xa2, "2026-03-01T00:00:00.000Z", 0);
    site.write(0xb3, "2026-02-01T00:00:00.000Z", 0);
    fs::create_dir(site.path().join("not-a-run")).unwrap();
    fs::create_dir(site.path().join(".writing-0123")).unwrap();
    let rows = site.store.list().unwrap();
    let order: Vec<_> = rows.iter().map(|r| r.run_id.clone()).collect();
    assert_eq!(order, [run_id(0xa2), run_id(0xb3), run_id(0xa1)]);
    assert_eq!(rows[2].artifact_id.as_deref(), Some(first.id.as_str()));
    assert_eq!(
        (rows[2].changed_files, rows[2].outcome.as_str()),
        (1, "succeeded")
    );
    assert!(rows[2].valid_manifest);
    let code = rows[2].summary_detail.as_ref().map(|detail| detail.code);
    assert_eq!(code, Some(SummaryCode::AgentSucceeded));

    let digest = first
        .id
        .as_str()
        .strip_prefix("artifact-bundle-sha256-")
        .unwrap();
    for reference in [
        first.id.as_str(),
        &first.id.as_str()[..40],
        digest,
        &digest[..8],
        run_id(0xa1).as_str(),
    ] {
        let found = site.store.resolve(reference).unwrap();
        assert_eq!(found.row.run_id, run_id(0xa1), "{reference}");
        assert_eq!(found.document("manifest.json")["id"], first.id.as_str());
        assert!(found.bytes("files/patch.diff").is_some());
        assert!(found.document("nowhere").is_null());
    }
    // All runs without changes have the same bundle id.
    let shared = rows[0].artifact_id.clone().unwrap();
    assert_eq!(Some(&shared), rows[1].artifact_id.as_ref());
    assert_eq!(site.code(&shared), ErrorCode::ArtifactAmbiguous);
    assert_eq!(site.code("run_"), ErrorCode::ArtifactAmbiguous);
    assert_eq!(site.code("  "), ErrorCode::ArtifactIdMissing);
    for nothing in [
        "zzz",
        "..",
        "../artifacts",
        "not-a-run",
        ".writing-0123",
        "/",
    ] {
        assert_eq!(site.code(nothing), ErrorCode::ArtifactNotFound, "{nothing}");
    }
}

#[test]
fn broken_bundles_are_listed_and_can_be_discarded() {
    let site = Site::new();
    site.write(1, TIME, 1);
    site.write(2, TIME, 2);
    site.write(3, TIME, 3);
    fs::write(
        site.path().join(run_id(1).as_str()).join("manifest.json"),
        "{",
    )
    .unwrap();
    fs::remove_dir_all(site.path().join(run_id(2).as_str()).join("files")).unwrap();
    fs::write(site.path().join(run_id(9).as_str()), "a file").unwrap();
    let rows = site.store.list().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows.iter().filter(|r| r.valid_manifest).count(), 2);
    assert_eq!(
        site.code(run_id(9).as_str()),
        ErrorCode::ArtifactOutsideRoot
    );
    for run in [1, 2, 9, 3] {
        let gone = site.store.discard(run_id(run).as_str()).unwrap();
        assert_eq!((gone.run_id, gone.discarded), (run_id(run), true));
        assert_eq!(site.code(run_id(run).as_str()), ErrorCode::ArtifactNotFound);
    }
    assert_eq!(fs::read_dir(site.path()).unwrap().count(), 0);
    assert_eq!(
        site.store.discard("run_1").unwrap_err().code(),
        ErrorCode::ArtifactNotFound
    );
}

#[test]
fn discard_of_a_bundle_removes_nothing_outside_it() {
    let site = Site::new();
    let outside = scratch();
    fs::write(outside.path().join("keep"), "x").unwrap();
    symlink(outside.path(), site.path().join(run_id(1).as_str())).unwrap();
    assert_eq!(
        site.code(run_id(1).as_str()),
        ErrorCode::ArtifactOutsideRoot
    );
    site.store.discard(run_id(1).as_str()).unwrap();
    // The bundle contains a link to a directory outside it and a directory without permissions.
    site.write(2, TIME, 2);
    let inside = site.path().join(run_id(2).as_str());
    symlink(outside.path(), inside.join("files/out")).unwrap();
    fs::create_dir(inside.join("locked")).unwrap();
    fs::write(inside.join("locked/x"), "x").unwrap();
    fs::set_permissions(inside.join("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    site.store.discard(run_id(2).as_str()).unwrap();
    assert_eq!(fs::read(outside.path().join("keep")).unwrap(), b"x");
    assert_eq!(fs::read_dir(site.path()).unwrap().count(), 0);
}

#[test]
fn sweep_removes_only_old_writing_and_discarding_directories() {
    let site = Site::new();
    site.write(1, TIME, 1);
    for name in [".writing-1", ".discarding-run_1", ".other"] {
        fs::create_dir_all(site.path().join(name).join("deep")).unwrap();
    }
    assert_eq!(site.store.sweep(0).unwrap(), 0);
    assert_eq!(site.store.sweep(i64::MAX).unwrap(), 2);
    assert!(site.path().join(".other").exists());
    assert_eq!(site.store.list().unwrap().len(), 1);
}

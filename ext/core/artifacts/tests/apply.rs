//! Preflight tests: a bundle and a list of approved files give a patch or an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;

use bundles::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use trees::{Random, Tree, edit, scratch, write_tree};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;

const TARGET: &str = "/wordpress/wp-content/plugins/p0";

fn file(text: &str) -> Node {
    Node::File {
        mode: FileMode::Regular,
        bytes: text.as_bytes().to_vec(),
    }
}

fn tree(rows: &[(&str, Node)]) -> Tree {
    rows.iter()
        .map(|(p, n)| (p.as_bytes().to_vec(), n.clone()))
        .collect()
}

struct Setup {
    host: Host,
    bundle: PathBuf,
    written: WrittenBundle,
    target: tempfile::TempDir,
}

fn setup(before: &Tree, after: &Tree, renames: RenameMode) -> Setup {
    setup_with(before, after, |made| made.renames = renames)
}

fn setup_with(before: &Tree, after: &Tree, with: impl FnOnce(&mut BundleInputs)) -> Setup {
    let host = Host::new();
    let work = scratch();
    let changes = captured(work.path(), before, after, &mut Random(3));
    let mut made = inputs(vec![mount(0, "p0", Some(changes))]);
    with(&mut made);
    let (bundle, written) = host.write(1, &made);
    let target = scratch();
    write_tree(target.path(), before);
    Setup {
        host,
        bundle,
        written,
        target,
    }
}

fn usual() -> Setup {
    let before = tree(&[
        ("a.php", file("1\n")),
        ("b.php", file("1\n")),
        ("dir/x", file("x\n")),
        (
            "link",
            Node::Symlink {
                target: b"a.php".to_vec(),
            },
        ),
        ("tofile/x", file("x\n")),
        ("empty", Node::Directory),
    ]);
    let after = tree(&[
        ("a.php", file("2\n")),
        ("dir/x", file("y\n")),
        (
            "link",
            Node::Symlink {
                target: b"dir/x".to_vec(),
            },
        ),
        ("new.php", file("n\n")),
        ("tofile", file("f\n")),
    ]);
    setup(&before, &after, RenameMode::Separate)
}

impl Setup {
    fn request(&self, files: &[&str]) -> PreflightRequest {
        PreflightRequest {
            approved_files: files.iter().map(|f| format!("{TARGET}/{f}")).collect(),
            targets: BTreeMap::from([(TARGET.to_owned(), self.target.path().to_owned())]),
            trusted: self.host.trusted(),
            ..PreflightRequest::default()
        }
    }
    fn all(&self) -> PreflightRequest {
        PreflightRequest {
            approved_files: self
                .written
                .changed_files
                .iter()
                .map(|f| f.path.clone())
                .collect(),
            ..self.request(&[])
        }
    }
    fn run(&self, request: &PreflightRequest) -> Result<Preflight, PreflightError> {
        preflight(&Dir::open(&self.bundle).unwrap(), request)
    }
    fn code(&self, request: &PreflightRequest) -> ErrorCode {
        self.run(request).unwrap_err().code()
    }
    fn conflict(&self, change: impl FnOnce(&Path)) -> Vec<(String, &'static str)> {
        change(self.target.path());
        match self.run(&self.all()) {
            Err(PreflightError::Conflict { conflicts, .. }) => conflicts
                .into_iter()
                .map(|c| {
                    (
                        c.path.strip_prefix(TARGET).unwrap()[1..].to_owned(),
                        c.reason,
                    )
                })
                .collect(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn preflight_accepts_approval_of_all_or_some_changed_files() {
    let setup = usual();
    let whole = setup.run(&setup.all()).unwrap();
    assert_eq!(
        whole.patch.as_bytes(),
        fs::read(setup.bundle.join("files/patch.diff")).unwrap()
    );
    assert_eq!(whole.changed_files.len(), 8);
    assert_eq!(whole.base_checked.len(), 1);
    assert_eq!(whole.mount_patches.len(), 1);
    assert_eq!(whole.mount_patches[0].patch, whole.patch);
    assert_eq!(whole.manifest_sha256, setup.written.manifest_sha256);
    assert_eq!(whole.signature.status, SignatureStatus::SignedByThisHost);

    let mut request = setup.request(&["new.php", "a.php", "a.php"]);
    request.manifest_sha256 = Some(setup.written.manifest_sha256.clone());
    let some = setup.run(&request).unwrap();
    assert_eq!(
        some.approved_files,
        [format!("{TARGET}/a.php"), format!("{TARGET}/new.php")]
    );
    assert_eq!(some.patch.matches("diff --git").count(), 2);
    assert_eq!(some.patch_sha256, sha256(some.patch.as_bytes()));
    // A directory alone gives an empty patch, because a patch cannot represent directories.
    assert_eq!(setup.run(&setup.request(&["empty"])).unwrap().patch, "");
}

#[test]
fn preflight_refuses_an_empty_approval_unknown_files_and_half_of_a_directory_to_file_change() {
    let setup = usual();
    assert_eq!(
        setup.code(&setup.request(&[])),
        ErrorCode::ApprovedFilesMissing
    );
    let error = setup
        .run(&setup.request(&["a.php", "nope", "./a.php"]))
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ApprovedFilesInvalid);
    assert_eq!(
        error.body().data.unwrap()["files"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let error = setup.run(&setup.request(&["tofile"])).unwrap_err();
    assert!(matches!(error, PreflightError::Torn { .. }), "{error}");
    assert!(matches!(
        setup.run(&setup.request(&["tofile/x"])),
        Err(PreflightError::Torn { .. })
    ));
    assert!(setup.run(&setup.request(&["tofile", "tofile/x"])).is_ok());
}

#[test]
fn preflight_refuses_approval_of_one_side_of_a_rename() {
    let text: String = (0..20).map(|i| format!("{i}\n")).collect();
    let before = tree(&[("old.php", file(&text)), ("z", file("z\n"))]);
    let after = tree(&[("new.php", file(&text)), ("z", file("y\n"))]);
    let setup = setup(&before, &after, RenameMode::Detect);
    for half in ["old.php", "new.php"] {
        let error = setup.run(&setup.request(&[half])).unwrap_err();
        assert!(
            matches!(
                error,
                PreflightError::Filter(FilterError::HalfRename { .. })
            ),
            "{error}"
        );
    }
    let both = setup.run(&setup.request(&["old.php", "new.php"])).unwrap();
    assert!(
        both.patch
            .contains("rename from old.php\nrename to new.php\n"),
        "{}",
        both.patch
    );
    assert!(
        !setup
            .run(&setup.request(&["z"]))
            .unwrap()
            .patch
            .contains("rename")
    );
}

#[test]
fn preflight_refuses_an_untrusted_signature_or_a_manifest_other_than_the_reviewed_one() {
    let setup = usual();
    let mut request = setup.all();
    assert!(setup.run(&request).is_ok());
    request.manifest_sha256 = Some(sha256(b"another"));
    assert_eq!(setup.code(&request), ErrorCode::ArtifactChanged);
    let mut request = setup.all();
    request.trusted = TrustedKeys::default();
    assert_eq!(setup.code(&request), ErrorCode::ArtifactUntrusted);
    request.signatures = SignatureRule::Any;
    assert!(setup.run(&request).is_ok());
    request.signatures = SignatureRule::Trusted;
    request.trusted.known = vec![setup.host.key.public_half().key_id()];
    assert!(setup.run(&request).is_ok());
    request.trusted.known = vec![Host::new().key.public_half().key_id()];
    assert_eq!(setup.code(&request), ErrorCode::ArtifactUntrusted);
}

#[test]
fn syntax_check_of_a_run_counts_only_with_a_trusted_signature_and_in_its_known_form() {
    let recorded = PhpSyntax {
        schema: PHP_SYNTAX_SCHEMA.to_owned(),
        php_version: "8.2.1".to_owned(),
        valid: [sha256(b"2\n")].into(),
        ..PhpSyntax::default()
    };
    let (before, after) = (
        tree(&[("a.php", file("1\n"))]),
        tree(&[("a.php", file("2\n"))]),
    );
    let with = |document: serde_json::Value| {
        setup_with(&before, &after, |made| {
            made.evidence.push(EvidenceDocument {
                name: PHP_SYNTAX_FILE,
                key: "phpSyntax",
                kind: PHP_SYNTAX_KIND,
                values: vec![document],
            });
        })
    };
    let document = serde_json::to_value(&recorded).unwrap();
    let setup = with(document.clone());
    assert_eq!(setup.run(&setup.all()).unwrap().php_syntax, Some(recorded));
    // The owner of any other key can write the document.
    let mut request = setup.all();
    request.trusted = TrustedKeys::default();
    request.signatures = SignatureRule::Any;
    assert_eq!(setup.run(&request).unwrap().php_syntax, None);
    for (member, value) in [
        ("schema", "wp-codebox/php-syntax/v2".into()),
        ("unknown", 1.into()),
        ("valid", "all".into()),
    ] {
        let mut other: serde_json::Value = document.clone();
        other[member] = value;
        let setup = with(other);
        assert_eq!(
            setup.run(&setup.all()).unwrap().php_syntax,
            None,
            "{member}"
        );
    }
}

#[test]
fn preflight_refuses_tampered_bundle() {
    let setup = usual();
    let patch = setup.bundle.join("files/patch.diff");
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("+2", "+3")).unwrap();
    let error = setup.run(&setup.all()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ArtifactVerificationFailed);
    assert!(
        error.to_string().contains(".sha256: \"files/patch.diff\""),
        "{error}"
    );
    assert!(
        !error.body().data.unwrap()["violations"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    // The signature is invalid even if all hashes are recomputed.
    let bent = Tampered(setup.bundle.clone());
    bent.identify();
    bent.seal();
    let mut request = setup.all();
    request.signatures = SignatureRule::Any;
    assert_eq!(setup.code(&request), ErrorCode::ArtifactVerificationFailed);
    fs::write(&patch, text).unwrap();
    bent.identify();
    bent.seal();
    assert!(
        setup.run(&setup.all()).is_ok(),
        "control: put back, it goes through again"
    );
}

#[test]
fn preflight_refuses_bundle_marked_not_approvable() {
    let setup = usual();
    let work = scratch();
    let changes = captured(
        work.path(),
        &tree(&[]),
        &tree(&[("a", file("a\n"))]),
        &mut Random(1),
    );
    let mut made = inputs(vec![mount(0, "p0", Some(changes))]);
    let request = setup.request(&["a"]);
    let (bundle, _) = setup.host.write(2, &made);
    assert!(preflight(&Dir::open(&bundle).unwrap(), &request).is_ok());
    made.approvable = Approvable::No {
        code: ErrorCode::BaselineChanged,
        reason: "The source changed while the run used it.".to_owned(),
    };
    let (bundle, _) = setup.host.write(3, &made);
    let error = preflight(&Dir::open(&bundle).unwrap(), &request).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BaselineChanged);
    assert!(error.to_string().contains("source changed"));
}

#[test]
fn preflight_reports_conflicts_when_target_differs_from_baseline() {
    let write = |path: &'static str, text: &'static str| {
        move |root: &Path| fs::write(root.join(path), text).unwrap()
    };
    let one = |path: &str, reason| vec![(path.to_owned(), reason)];
    assert_eq!(
        usual().conflict(write("a.php", "other\n")),
        one("a.php", "other contents")
    );
    assert_eq!(
        usual().conflict(write("new.php", "n\n")),
        one("new.php", "exists already")
    );
    assert_eq!(
        usual().conflict(write("empty/x", "x")),
        one("empty", "not empty")
    );
    assert_eq!(
        usual().conflict(|root| fs::remove_file(root.join("b.php")).unwrap()),
        one("b.php", "missing")
    );
    assert_eq!(
        usual().conflict(|root| {
            fs::remove_file(root.join("link")).unwrap();
            symlink("b.php", root.join("link")).unwrap();
        }),
        one("link", "other contents")
    );
    assert_eq!(
        usual().conflict(|root| {
            fs::remove_file(root.join("a.php")).unwrap();
            symlink("b.php", root.join("a.php")).unwrap();
        }),
        one("a.php", "another type")
    );
    // After the run, a directory of the target was replaced by a link to another directory
    // that has the same file.
    assert_eq!(
        usual().conflict(|root| {
            fs::rename(root.join("dir"), root.join("elsewhere")).unwrap();
            symlink("elsewhere", root.join("dir")).unwrap();
        }),
        one("dir/x", "reached through a link")
    );
    let setup = usual();
    write("unrelated.php", "x")(setup.target.path());
    assert!(
        setup.run(&setup.all()).is_ok(),
        "control: other files may change"
    );
    write("a.php", "other\n")(setup.target.path());
    assert!(
        setup.run(&setup.request(&["new.php"])).is_ok(),
        "control: only approved files count"
    );
    let mut request = setup.all();
    request
        .targets
        .insert(TARGET.to_owned(), PathBuf::from("/nonexistent"));
    assert_eq!(setup.code(&request), ErrorCode::MountSourceInvalid);
}

#[test]
fn preflight_accepts_generated_bundles_on_their_baseline_and_refuses_a_second_apply() {
    let host = Host::new();
    let mut checked = 0;
    for number in 0..120_u64 {
        let random = &mut Random(number ^ 0xba5e);
        let before = trees::baseline(random);
        let after = edit(random, &before);
        let work = scratch();
        let changes = captured(work.path(), &before, &after, random);
        if changes.entries.is_empty() {
            continue;
        }
        let mut made = inputs(vec![
            mount(0, "p0", Some(changes)),
            mount(1, "p1", Some(MountChanges::default())),
        ]);
        made.renames = if number % 2 == 0 {
            RenameMode::Detect
        } else {
            RenameMode::Separate
        };
        let (bundle, written) = host.write(number, &made);
        let request = PreflightRequest {
            approved_files: written
                .changed_files
                .iter()
                .map(|f| f.path.clone())
                .collect(),
            targets: BTreeMap::from([(TARGET.to_owned(), work.path().join("lower"))]),
            trusted: host.trusted(),
            ..PreflightRequest::default()
        };
        let dir = Dir::open(&bundle).unwrap();
        let passed = preflight(&dir, &request).unwrap_or_else(|e| panic!("{number}: {e}"));
        assert_eq!(
            passed.patch.as_bytes(),
            fs::read(bundle.join("files/patch.diff")).unwrap()
        );
        let own = fs::read(bundle.join("files/diffs/mount-0.patch")).unwrap();
        assert_eq!(passed.mount_patches[0].patch.as_bytes(), own, "{number}");
        // After the patch was applied, the same approval is a conflict.
        let applied = scratch();
        write_tree(applied.path(), &after);
        let request = PreflightRequest {
            targets: BTreeMap::from([(TARGET.to_owned(), applied.path().to_owned())]),
            ..request
        };
        let only_directories = passed
            .changed_files
            .iter()
            .all(|f| f.entry_type == EntryType::Directory);
        if !only_directories {
            let error = preflight(&dir, &request).unwrap_err();
            assert_eq!(error.code(), ErrorCode::ApplyConflict, "{number}");
        }
        checked += 1;
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn preflight_refuses_bundle_whose_patch_contradicts_its_changed_files() {
    // All hashes are valid, but patch and `changed-files.json` contradict each other. The bundle is
    // unsigned, which the request accepts.
    let setup = usual();
    let bent = Tampered(setup.bundle.clone());
    bent.drop_members(&[
        "files/attestation.dsse.json",
        "files/runtime-reference-manifest.json",
        "files/runtime-replay-index.json",
        "files/review.json",
        "metadata.json",
    ]);
    let mut request = setup.request(&["a.php"]);
    request.signatures = SignatureRule::Any;
    bent.identify();
    bent.seal();
    assert!(setup.run(&request).is_ok());
    let patch = fs::read_to_string(setup.bundle.join("files/patch.diff")).unwrap();
    let deletion = "diff --git a/a.php b/a.php\ndeleted file mode 100644\n--- a/a.php\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-1\n";
    let start = patch.find("diff --git a/a.php").unwrap();
    let end = start + patch[start..].find("\ndiff --git").unwrap() + 1;
    let swapped = format!("{}{deletion}{}", &patch[..start], &patch[end..]);
    for (text, wanted) in [
        (swapped, "in a different way"),
        (format!("{}{}", &patch[..start], &patch[end..]), "0 blocks"),
        (format!("{patch}{}", &patch[start..end]), "2 blocks"),
        (format!("{patch}garbage\n"), "malformed"),
    ] {
        fs::write(setup.bundle.join("files/patch.diff"), text).unwrap();
        bent.identify();
        bent.seal();
        let error = setup.run(&request).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PatchUnfilterable);
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn zip_refuses_names_that_windows_reads_as_paths_and_contents_above_the_limit() {
    for name in ["in\\..\\out.php", "c:x.php"] {
        let long = " ".repeat(1 << 20);
        let after = tree(&[("a.php", file(&long)), (name, file("x\n"))]);
        let made = setup(&tree(&[]), &after, RenameMode::Separate);
        let bundle = Dir::open(&made.bundle).unwrap();
        let refused = made.run(&made.all()).unwrap().zip(&bundle, 1 << 21);
        assert!(matches!(refused, Err(DownloadError::Name { .. })), "{name}");
        let one = made.run(&made.request(&["a.php"])).unwrap();
        // The archive is smaller than this limit, but its uncompressed contents are larger.
        let limit = one.zip(&bundle, 1 << 21).unwrap().len() as u64 + 1;
        let refused = one.zip(&bundle, limit);
        assert!(matches!(refused, Err(DownloadError::TooLarge { .. })));
    }
}

/// Prints the processor time of the preflight and of reading the changes, as JSON lines, for the numbers of
/// files in `PREFLIGHT_SIZES`. `tests/bench/results/preflight.jsonl` has its output.
#[test]
#[ignore = "a measurement"]
fn measure_preflight_of_many_files() {
    let sizes = std::env::var("PREFLIGHT_SIZES").unwrap_or_else(|_| "1000".to_owned());
    for size in sizes.split(',').map(|size| size.parse::<usize>().unwrap()) {
        for shape in ["modified", "directory-to-file"] {
            let setup = many_files(size, shape);
            let request = setup.all();
            let started = processor_time();
            let ready = setup.run(&request).unwrap();
            let checked = processor_time();
            let changes = ready.changes(&ready.mount_patches[0], setup.target.path());
            let read = processor_time();
            assert_eq!(changes.unwrap().entries.len(), ready.changed_files.len());
            println!(
                "{{\"shape\": \"{shape}\", \"files\": {}, \"preflight_ms\": {}, \"changes_ms\": {}}}",
                ready.changed_files.len(),
                (checked - started).as_millis(),
                (read - checked).as_millis()
            );
        }
    }
}

fn processor_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// Returns a bundle with `size` changed files: files with other contents, or files where the
/// directory of another file was.
fn many_files(size: usize, shape: &str) -> Setup {
    let (mut before, mut after) = (Tree::new(), Tree::new());
    for number in 0..size {
        let name = format!("d{:03}/f{number:06}", number / 1000);
        match shape {
            "modified" => {
                before.insert(name.clone().into_bytes(), file("1\n"));
                after.insert(name.into_bytes(), file("2\n"));
            }
            _ if number % 2 == 0 => {
                before.insert(format!("{name}/x").into_bytes(), file("1\n"));
                after.insert(name.into_bytes(), file("2\n"));
            }
            _ => {}
        }
    }
    setup(&before, &after, RenameMode::Separate)
}

//! Transfer of bundles: deterministic archives, and imports that verify everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;

use bundles::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use trees::scratch;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;

const MOST: u64 = 64 * 1024 * 1024;

struct Target {
    state: tempfile::TempDir,
    store: Store,
}

impl Target {
    fn new() -> Self {
        let state = scratch();
        let dir = Dir::open(state.path()).unwrap();
        let store = Store::open(&dir, &SiteId::new("site-1").unwrap()).unwrap();
        Self { state, store }
    }
    fn import(&self, archive: &[u8], rules: &ImportRules) -> Result<Imported, ErrorCode> {
        let members = MemberSet::from_archive(archive).map_err(|e| e.code())?;
        import(&self.store, &members, rules).map_err(|e| e.code())
    }
    fn names(&self) -> Vec<String> {
        let path = self.state.path().join("sites/site-1/artifacts");
        let mut names: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
    fn path(&self, run: &RunId) -> PathBuf {
        let artifacts = self.state.path().join("sites/site-1/artifacts");
        artifacts.join(run.as_str())
    }
}

fn archive(bundle: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let dir = Dir::open(bundle).unwrap();
    let report = write_archive(&dir, &VerifyOptions::default(), MOST, &mut bytes).unwrap();
    assert_eq!(report.bytes, bytes.len() as u64);
    assert_eq!(report.sha256, sha256(&bytes));
    bytes
}

/// Writes a bundle whose manifest contains the run id, as in bundles of real runs.
fn made(host: &Host, number: u64) -> (PathBuf, WrittenBundle) {
    let work = scratch();
    let mut inputs = random_inputs(work.path(), number);
    inputs.runtime.id = run_id(number).as_str().to_owned();
    host.write(number, &inputs)
}

#[test]
fn exported_and_imported_bundle_is_byte_identical() {
    let host = Host::new();
    for number in 1..12 {
        let (bundle, written) = made(&host, number);
        let bytes = archive(&bundle);
        assert_eq!(bytes, archive(&bundle), "the same bundle, the same bytes");
        let target = Target::new();
        let imported = target.import(&bytes, &ImportRules::default()).unwrap();
        assert_eq!(imported.status, ImportStatus::Created);
        assert_eq!(imported.run_id, run_id(number));
        assert_eq!(imported.artifact_id, written.id.as_str());
        assert_eq!(imported.manifest_sha256, written.manifest_sha256);
        // The importing host does not know the signing key.
        assert_eq!(
            imported.verification.signature.status,
            SignatureStatus::SignedByUnknown
        );
        assert_eq!(archive(&target.path(&imported.run_id)), bytes);
        // The program `tar` extracts the files of the bundle from the archive.
        let out = scratch();
        let file = out.path().join("a.tar");
        fs::write(&file, &bytes).unwrap();
        let tar = std::process::Command::new("tar")
            .args(["-xf"])
            .arg(&file)
            .args(["--strip-components=1", "-C"])
            .arg(out.path())
            .status()
            .unwrap();
        assert!(tar.success());
        fs::remove_file(&file).unwrap();
        assert_eq!(archive(out.path()), bytes);
    }
}

#[test]
fn members_with_long_names_are_exported_and_imported() {
    let host = Host::new();
    let mut inputs = inputs(Vec::new());
    inputs.runtime.id = run_id(1).as_str().to_owned();
    // About 200 and 3,000 bytes, too long for the name field of a member's header.
    let names = [(200, 1), (250, 12)]
        .map(|(length, parts)| format!("files/{}", vec!["n".repeat(length); parts].join("/")));
    for name in &names {
        inputs.files.push(ArtifactFile {
            path: name.clone(),
            kind: "file",
            media: "text/plain",
            content: ArtifactContent::Text(format!("{} bytes", name.len())),
        });
    }
    let (bundle, _) = host.write(1, &inputs);
    let bytes = archive(&bundle);
    let target = Target::new();
    let imported = target.import(&bytes, &ImportRules::default()).unwrap();
    assert_eq!(imported.status, ImportStatus::Created);
    let stored = target.path(&imported.run_id);
    for name in &names {
        let content = fs::read_to_string(stored.join(name)).unwrap();
        assert_eq!(content, format!("{} bytes", name.len()));
    }
    assert_eq!(archive(&stored), bytes);
}

#[test]
fn second_import_of_a_bundle_changes_nothing_and_a_different_bundle_of_the_run_needs_replace() {
    let host = Host::new();
    let (bundle, _) = made(&host, 7);
    let target = Target::new();
    let rules = ImportRules::default();
    let members = MemberSet::from_directory(&Dir::open(&bundle).unwrap()).unwrap();
    let first = import(&target.store, &members, &rules).unwrap();
    assert_eq!(first.status, ImportStatus::Created);
    let again = target.import(&archive(&bundle), &rules).unwrap();
    assert_eq!(
        (again.status, again.run_id),
        (ImportStatus::Existing, first.run_id.clone())
    );

    // A different bundle, whose manifest has the same run id.
    let other = Host::new();
    let work = scratch();
    let mut inputs = random_inputs(work.path(), 8);
    inputs.runtime.id = run_id(7).as_str().to_owned();
    let (other, _) = other.write(7, &inputs);
    let bytes = archive(&other);
    let conflict = target.import(&bytes, &rules).unwrap_err();
    assert_eq!(conflict, ErrorCode::ArtifactImportConflict);
    assert_eq!(archive(&target.path(&first.run_id)), archive(&bundle));
    let replace = ImportRules {
        replace: Replace::Replace,
        ..ImportRules::default()
    };
    let updated = target.import(&bytes, &replace).unwrap();
    assert_eq!(updated.status, ImportStatus::Updated);
    assert_eq!(archive(&target.path(&first.run_id)), bytes);
    assert_eq!(
        target.names(),
        [first.run_id.to_string()],
        "nothing hidden stays"
    );

    // If the stored bundle was damaged, an import of the same bundle is a conflict.
    fs::write(target.path(&first.run_id).join("files/patch.diff"), "x").unwrap();
    assert_eq!(
        target.import(&bytes, &rules).unwrap_err(),
        ErrorCode::ArtifactImportConflict
    );
    assert_eq!(
        target.import(&bytes, &replace).unwrap().status,
        ImportStatus::Updated
    );
}

#[test]
fn import_refuses_bundle_with_unexpected_id_or_digest() {
    let host = Host::new();
    let (bundle, written) = made(&host, 3);
    let bytes = archive(&bundle);
    let target = Target::new();
    let wrong = |artifact: Option<&str>, digest: Option<&str>| ImportRules {
        expected_artifact_id: artifact.map(str::to_owned),
        expected_content_digest: digest.map(str::to_owned),
        ..ImportRules::default()
    };
    let zero = "0".repeat(64);
    let other = format!("artifact-bundle-sha256-{zero}");
    for (rules, code) in [
        (
            wrong(Some(&other), None),
            ErrorCode::ArtifactImportIdMismatch,
        ),
        (
            wrong(None, Some(&zero)),
            ErrorCode::ArtifactImportDigestMismatch,
        ),
    ] {
        assert_eq!(target.import(&bytes, &rules).unwrap_err(), code);
        assert_eq!(target.names(), Vec::<String>::new());
    }
    let right = wrong(
        Some(written.id.as_str()),
        Some(written.content_digest.value.as_str()),
    );
    assert_eq!(
        target.import(&bytes, &right).unwrap().status,
        ImportStatus::Created
    );
}

#[test]
fn import_derives_the_run_id_from_the_manifest_hash_if_the_manifest_has_no_run_id() {
    let host = Host::new();
    let work = scratch();
    let mut inputs = random_inputs(work.path(), 5);
    inputs.runtime.id = "runtime-abc".to_owned();
    let (bundle, _) = host.write(5, &inputs);
    let target = Target::new();
    let rules = ImportRules::default();
    let first = target.import(&archive(&bundle), &rules).unwrap();
    assert_eq!(first.run_id, RunId::from_digest(&first.manifest_sha256));
    let again = target.import(&archive(&bundle), &rules).unwrap();
    assert_eq!(
        (again.status, again.run_id),
        (ImportStatus::Existing, first.run_id)
    );
}

/// Builds an archive byte by byte, because the tar crate would refuse some of the names.
fn handmade(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o777);
        header.set_size(content.len() as u64);
        if *kind == tar::EntryType::Symlink || *kind == tar::EntryType::Link {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn bundle_archive_that_is_unsafe_invalid_or_too_large_is_refused_and_leaves_no_files() {
    use tar::EntryType::{Block, Char, Fifo, Link, Regular, Symlink};
    let manifest = ("b/manifest.json", Regular, b"{}" as &[u8]);
    let invalid = ErrorCode::ArtifactImportSourceInvalid;
    let target = Target::new();
    let rules = ImportRules::default();
    for entry in [
        ("../../evil", Regular, b"x" as &[u8]),
        ("/etc/evil", Regular, b"x"),
        ("b/../../evil", Regular, b"x"),
        ("b//evil", Regular, b"x"),
        ("b/./evil", Regular, b"x"),
        ("b/a\\..\\evil", Regular, b"x"),
        ("b/\x01", Regular, b"x"),
        ("b/link", Symlink, b""),
        ("b/hard", Link, b""),
        ("b/fifo", Fifo, b""),
        ("b/char", Char, b""),
        ("b/block", Block, b""),
        ("b/manifest.json", Regular, b"{}"),
        ("other/file", Regular, b"x"),
    ] {
        let bytes = handmade(&[manifest, entry]);
        assert_eq!(
            target.import(&bytes, &rules).unwrap_err(),
            invalid,
            "{entry:?}"
        );
    }
    for bytes in [
        Vec::new(),
        b"not an archive at all, but long enough to be read as the head of one".repeat(20),
        handmade(&[("b/file", Regular, b"x")]),
        handmade(&[manifest])[..700].to_vec(),
    ] {
        assert_eq!(target.import(&bytes, &rules).unwrap_err(), invalid);
    }
    // A header that declares a size beyond the limit, and an archive with too many members.
    let mut huge = handmade(&[manifest, ("b/huge", Regular, b"")]);
    let mut header = tar::Header::new_ustar();
    header.set_path("b/huge").unwrap();
    header.set_size(1 << 40);
    header.set_entry_type(Regular);
    header.set_cksum();
    huge.splice(1024..1536, header.as_bytes().iter().copied());
    assert_eq!(
        target.import(&huge, &rules).unwrap_err(),
        ErrorCode::ArtifactTooLarge
    );
    let names: Vec<String> = (0..2_001).map(|n| format!("b/{n}")).collect();
    let many: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), Regular, b"" as &[u8]))
        .collect();
    assert_eq!(
        target.import(&handmade(&many), &rules).unwrap_err(),
        ErrorCode::ArtifactTooLarge
    );
    // Half a gigabyte of zeros in half a megabyte of gzip.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut header = tar::Header::new_ustar();
    header.set_path("b/bomb").unwrap();
    header.set_size(200 * 1024 * 1024);
    header.set_cksum();
    for name in 0..3 {
        header.set_path(format!("b/bomb{name}")).unwrap();
        header.set_cksum();
        bomb.write_all(header.as_bytes()).unwrap();
        let block = vec![0; 1024 * 1024];
        (0..200).for_each(|_| bomb.write_all(&block).unwrap());
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1024 * 1024);
    assert_eq!(
        target.import(&bomb, &rules).unwrap_err(),
        ErrorCode::ArtifactTooLarge
    );

    assert_eq!(target.names(), Vec::<String>::new());
    // Control: the same target and rules accept the gzipped archive of a valid bundle.
    let host = Host::new();
    let (bundle, _) = made(&host, 2);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&archive(&bundle)).unwrap();
    let status = target
        .import(&gzip.finish().unwrap(), &rules)
        .unwrap()
        .status;
    assert_eq!(status, ImportStatus::Created);
}

#[test]
fn import_into_a_removed_artifacts_directory_fails_with_the_code_copy_failed() {
    let bytes = archive(&made(&Host::new(), 1).0);
    let target = Target::new();
    fs::remove_dir(target.state.path().join("sites/site-1/artifacts")).unwrap();
    assert_eq!(
        target.import(&bytes, &ImportRules::default()).unwrap_err(),
        ErrorCode::ArtifactImportCopyFailed
    );
    // Control: the same archive is imported while the directory exists.
    let target = Target::new();
    target.import(&bytes, &ImportRules::default()).unwrap();
}

#[test]
fn tampered_bundle_is_neither_exported_nor_imported() {
    let host = Host::new();
    let (bundle, _) = made(&host, 4);
    let target = Target::new();
    let good = archive(&bundle);
    // Tampering with the archive: one byte of a file differs.
    let mut bent = good.clone();
    let at = bent.windows(8).rposition(|w| w == b"\"schema\"").unwrap();
    bent[at + 1] = b'S';
    assert_eq!(
        target.import(&bent, &ImportRules::default()).unwrap_err(),
        ErrorCode::ArtifactImportSourceInvalid
    );
    // Tampering with the bundle directory: the bundle is neither exported nor imported.
    fs::write(bundle.join("files/patch.diff"), "tampered").unwrap();
    let dir = Dir::open(&bundle).unwrap();
    let error = write_archive(&dir, &VerifyOptions::default(), MOST, Vec::new()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ArtifactVerificationFailed);
    // The message has the path of the first violation.
    assert!(
        error.to_string().contains(".sha256: \"files/patch.diff\""),
        "{error}"
    );
    let members = MemberSet::from_directory(&dir).unwrap();
    let error = import(&target.store, &members, &ImportRules::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ArtifactImportSourceInvalid);
    assert!(
        error.to_string().contains(".sha256: \"files/patch.diff\""),
        "{error}"
    );
    assert!(error.body().data.unwrap().contains_key("violations"));
    // A link in a bundle directory is not followed.
    let (linked, _) = made(&host, 6);
    fs::rename(linked.join("metadata.json"), linked.join("../elsewhere")).unwrap();
    symlink("../elsewhere", linked.join("metadata.json")).unwrap();
    let error = MemberSet::from_directory(&Dir::open(&linked).unwrap()).unwrap_err();
    assert!(matches!(error, MembersError::Special { .. }), "{error}");
    assert_eq!(target.names(), Vec::<String>::new());
}

#[test]
fn export_fails_when_archive_exceeds_size_limit() {
    let host = Host::new();
    let (bundle, _) = made(&host, 9);
    let whole = archive(&bundle).len() as u64;
    let dir = Dir::open(&bundle).unwrap();
    let within = |most| write_archive(&dir, &VerifyOptions::default(), most, Vec::new());
    assert_eq!(within(whole).unwrap().bytes, whole);
    assert_eq!(
        within(whole - 1).unwrap_err().code(),
        ErrorCode::ArtifactTooLarge
    );
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("refused")]
struct Refused;

fn accept(_: &Dir, _: &Verification) -> Result<(), Refused> {
    Ok(())
}

/// Returns the preflight of a stored bundle for all its files, on a host with this key.
fn trusted_preflight(
    bundle: &Path,
    written: &WrittenBundle,
    host: PublicKey,
) -> Result<Preflight, PreflightError> {
    let request = PreflightRequest {
        approved_files: written
            .changed_files
            .iter()
            .map(|f| f.path.clone())
            .collect(),
        trusted: TrustedKeys {
            host: vec![host],
            known: Vec::new(),
        },
        ..PreflightRequest::default()
    };
    preflight(&Dir::open(bundle).unwrap(), &request)
}

/// Writes a bundle with a change that may be approved.
fn made_with_a_change(host: &Host, number: u64) -> (PathBuf, WrittenBundle) {
    let work = scratch();
    let random = &mut trees::Random(number);
    let before = trees::baseline(random);
    let after = trees::edit(random, &before);
    let changes = captured(work.path(), &before, &after, random);
    let mut inputs = inputs(vec![mount(0, "demo", Some(changes))]);
    inputs.runtime.id = run_id(number).as_str().to_owned();
    let (path, written) = host.write(number, &inputs);
    assert!(!written.changed_files.is_empty());
    (path, written)
}

#[test]
fn adopted_bundle_is_signed_by_both_hosts_and_passes_the_preflight_of_the_adopting_host() {
    let (node, host) = (Host::new(), Host::new());
    let (bundle, written) = made_with_a_change(&node, 5);
    let members = || MemberSet::from_archive(archive(&bundle).as_slice()).unwrap();
    let own = host.key.public_half();

    // Control: an import alone does not make the host trust the bundle.
    let plain = Target::new();
    let imported = import(&plain.store, &members(), &ImportRules::default()).unwrap();
    let refused = trusted_preflight(&plain.path(&imported.run_id), &written, own);
    assert!(
        matches!(
            refused,
            Err(PreflightError::Untrusted {
                status: SignatureStatus::SignedByUnknown
            })
        ),
        "{refused:?}"
    );

    let target = Target::new();
    let adopted = adopt(&target.store, &members(), &run_id(5), &host.key, accept).unwrap();
    assert_eq!(adopted.status, ImportStatus::Created);
    assert_eq!(adopted.artifact_id, written.id.as_str());
    assert_ne!(adopted.manifest_sha256, written.manifest_sha256);
    let signature = &adopted.verification.signature;
    assert_eq!(signature.status, SignatureStatus::SignedByThisHost);
    assert_eq!(signature.key_id, Some(own.key_id()));
    assert_eq!(signature.coverage, Some(SignatureCoverage::Manifest));
    let stored = target.path(&run_id(5));
    let ready = trusted_preflight(&stored, &written, own).unwrap();
    assert_eq!(ready.manifest_sha256, adopted.manifest_sha256);

    // The same bytes again change nothing. The host that made the bundle still knows its signature.
    let again = adopt(&target.store, &members(), &run_id(5), &host.key, accept).unwrap();
    assert_eq!(again.status, ImportStatus::Existing);
    assert_eq!(
        node.verify(&stored).signature.status,
        SignatureStatus::SignedByThisHost
    );
    assert_eq!(target.names(), [run_id(5).to_string()]);

    // The independent verifier accepts the node's bundle and the adopted one, not a changed one.
    let changed = scratch();
    let changed = changed.path().join("b");
    copy_dir(&stored, &changed);
    fs::write(changed.join("files/patch.diff"), "x").unwrap();
    let script = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/verify_bundle.py");
    let verdicts: Vec<String> = [&bundle, &stored, &changed]
        .iter()
        .map(|directory| {
            let mut child = std::process::Command::new("python3")
                .arg("-I")
                .arg(&script)
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let line = format!("{}\n", directory.display());
            child
                .stdin
                .take()
                .unwrap()
                .write_all(line.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            format!(
                "{} {}",
                answer["valid"],
                answer["signature"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(verdicts, ["true signed", "true signed", "false invalid"]);
}

#[test]
fn bundle_is_not_adopted_if_the_callers_check_refuses_it_or_it_is_unsigned_or_of_another_run() {
    let (node, host) = (Host::new(), Host::new());
    let (bundle, _) = made_with_a_change(&node, 6);
    let members = MemberSet::from_directory(&Dir::open(&bundle).unwrap()).unwrap();
    let target = Target::new();
    let refused = adopt(&target.store, &members, &run_id(6), &host.key, |_, _| {
        Err(Refused)
    });
    assert!(matches!(refused, Err(AdoptError::Refused(Refused))));
    let other = adopt(&target.store, &members, &run_id(7), &host.key, accept);
    assert!(
        matches!(other, Err(AdoptError::OtherRun { .. })),
        "{other:?}"
    );

    let work = scratch();
    let mut unsigned = inputs(Vec::new());
    unsigned.runtime.id = run_id(8).as_str().to_owned();
    write_bundle(
        &Dir::open(work.path()).unwrap(),
        &run_id(8),
        &unsigned,
        &wp_codebox_policy::Redactor::new(&[]),
        BundleSigner::Unsigned,
    )
    .unwrap();
    let path = work.path().join(run_id(8).as_str());
    let without = MemberSet::from_directory(&Dir::open(&path).unwrap()).unwrap();
    let unsigned = adopt(&target.store, &without, &run_id(8), &host.key, accept);
    assert!(
        matches!(unsigned, Err(AdoptError::Envelope { .. })),
        "{unsigned:?}"
    );
    assert!(target.names().is_empty(), "nothing stays behind");
    adopt(&target.store, &members, &run_id(6), &host.key, accept).unwrap();
}

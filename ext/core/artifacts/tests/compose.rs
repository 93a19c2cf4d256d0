//! Bundles from contents that a browser uploaded: the host's own diff, the signature with its
//! origin, and every refusal next to an upload that is accepted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;
mod uploads;

use bundles::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use trees::scratch;
use uploads::*;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;

fn preflight_of(
    site: &Site,
    bundle: &Path,
    rule: BrowserOriginRule,
) -> Result<Preflight, PreflightError> {
    let request = PreflightRequest {
        approved_files: vec![format!("{TARGET}/foo.php")],
        trusted: site.trusted(),
        browser_origin: rule,
        ..PreflightRequest::default()
    };
    preflight(&Dir::open(bundle).unwrap(), &request)
}

#[test]
fn upload_becomes_a_bundle_whose_patch_git_applies_to_the_baseline() {
    let site = Site::new();
    let (bundle, composed) = site.kept(edit());
    assert_eq!(composed.status, ComposeStatus::Created);
    let names: Vec<_> = changed(&bundle);
    let row = |path: &str, status: &str| (path.to_owned(), status.to_owned());
    assert_eq!(
        names,
        [
            row("foo.php", "modified"),
            row("inc/b.php", "deleted"),
            row("new/x.js", "added")
        ]
    );
    let work = scratch();
    fs::create_dir(work.path().join("inc")).unwrap();
    fs::write(work.path().join("foo.php"), CODE).unwrap();
    fs::write(work.path().join("inc/b.php"), "<?php // b\n").unwrap();
    let patch = fs::read(bundle.join("files/patch.diff")).unwrap();
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(work.path())
        .env("GIT_CEILING_DIRECTORIES", "/")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(&patch).unwrap();
    assert!(git.wait().unwrap().success());
    let applied = fs::read_to_string(work.path().join("foo.php")).unwrap();
    assert_eq!(applied, CODE.replace('1', "2"));
    assert!(!work.path().join("inc/b.php").exists());

    let manifest = json_of(&bundle, "manifest.json");
    let metadata = json_of(&bundle, "metadata.json");
    assert_eq!(manifest["origin"], "browser");
    assert_eq!(metadata["origin"], "browser");
    assert_eq!(manifest["runtime"]["backend"], "browser");
    assert_eq!(metadata["isolation"]["level"], "none");
    let mounts = fs::read_to_string(bundle.join("files/mounts.jsonl")).unwrap();
    let mount: Value = serde_json::from_str(mounts.trim()).unwrap();
    assert_eq!(mount["metadata"]["origin"]["slug"], "foo");
    assert_eq!(site.names(), [composed.run_id.to_string()]);
}

#[test]
fn equal_upload_of_the_same_caller_gives_the_stored_bundle() {
    let site = Site::new();
    let (bundle, first) = site.kept(edit());
    let bytes = fs::read(bundle.join("manifest.json")).unwrap();
    let mut later = edit();
    later.created_at = "2027-01-02T03:04:05.678Z".to_owned();
    let (_, again) = site.kept(later);
    assert_eq!(again.status, ComposeStatus::Existing);
    assert_eq!(again.run_id, first.run_id);
    assert_eq!(fs::read(bundle.join("manifest.json")).unwrap(), bytes);
    let mut other = edit();
    other.identity = "user 2, session 2".to_owned();
    let (_, other) = site.kept(other);
    assert_eq!(other.status, ComposeStatus::Created);
    assert_ne!(other.run_id, first.run_id);
    let same = |one: &Composed| one.verification.manifest.clone().unwrap()["id"].clone();
    assert_eq!(same(&first), same(&other), "the same content");
    // A stored bundle that was altered is not reported as the caller's.
    fs::write(bundle.join("files/patch.diff"), "").unwrap();
    let error = site.compose(edit()).unwrap_err();
    assert!(matches!(error, ComposeError::Damaged { .. }), "{error}");
}

#[test]
fn browser_bundle_is_applied_only_with_a_trusted_signature_and_a_confirmation_of_its_origin() {
    let site = Site::new();
    let (bundle, composed) = site.kept(edit());
    let signature = &composed.verification.signature;
    assert_eq!(signature.status, SignatureStatus::BrowserOrigin);
    assert_eq!(signature.origin, Some(BundleOrigin::Browser));
    assert_eq!(signature.coverage, Some(SignatureCoverage::Manifest));
    let refused = preflight_of(&site, &bundle, BrowserOriginRule::Refuse).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ApplyBrowserOriginUnconfirmed);
    let ready = preflight_of(&site, &bundle, BrowserOriginRule::Confirmed).unwrap();
    assert_eq!(ready.signature.origin, Some(BundleOrigin::Browser));
    // A preflight that only shows the change needs no confirmation.
    let shown = PreflightRequest {
        approved_files: vec![format!("{TARGET}/foo.php")],
        trusted: site.trusted(),
        signatures: SignatureRule::Any,
        ..PreflightRequest::default()
    };
    preflight(&Dir::open(&bundle).unwrap(), &shown).unwrap();
    // A follow-up run continues only a change that this host saw.
    let whole = whole_bundle(Dir::open(&bundle).unwrap(), site.key.public_keys());
    let code = whole.unwrap_err().code();
    assert_eq!(code, ErrorCode::ApplyBrowserOriginUnconfirmed);

    // The confirmation is no substitute for a signature.
    let other = Site::new();
    let error = preflight_of(&other, &bundle, BrowserOriginRule::Confirmed).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ArtifactUntrusted);
    let known = TrustedKeys {
        host: vec![other.key.public_half()],
        known: vec![site.key.public_half().key_id()],
    };
    let options = VerifyOptions {
        trusted: known.clone(),
    };
    let seen = verify_bundle(&Dir::open(&bundle).unwrap(), &options);
    assert_eq!(seen.signature.status, SignatureStatus::BrowserOriginKnown);
    let request = |browser_origin| PreflightRequest {
        approved_files: vec![format!("{TARGET}/foo.php")],
        trusted: known.clone(),
        browser_origin,
        ..PreflightRequest::default()
    };
    let directory = Dir::open(&bundle).unwrap();
    let refused = preflight(&directory, &request(BrowserOriginRule::Refuse));
    assert_eq!(
        refused.unwrap_err().code(),
        ErrorCode::ApplyBrowserOriginUnconfirmed
    );
    preflight(&directory, &request(BrowserOriginRule::Confirmed)).unwrap();
}

#[test]
fn imported_browser_bundle_keeps_its_browser_origin() {
    let (site, other) = (Site::new(), Site::new());
    let (bundle, composed) = site.kept(edit());
    let mut archive = Vec::new();
    let directory = Dir::open(&bundle).unwrap();
    write_archive(&directory, &VerifyOptions::default(), 1 << 26, &mut archive).unwrap();
    let rules = ImportRules {
        trusted: TrustedKeys {
            host: vec![other.key.public_half()],
            known: vec![site.key.public_half().key_id()],
        },
        ..ImportRules::default()
    };
    let members = MemberSet::from_archive(archive.as_slice()).unwrap();
    let imported = import(&other.store, &members, &rules).unwrap();
    assert_eq!(imported.run_id, composed.run_id);
    assert_eq!(
        imported.verification.signature.status,
        SignatureStatus::BrowserOriginKnown
    );
    let members = MemberSet::from_archive(archive.as_slice()).unwrap();
    let unknown = import(&Site::new().store, &members, &ImportRules::default()).unwrap();
    assert_eq!(
        unknown.verification.signature.status,
        SignatureStatus::SignedByUnknown
    );
    assert_eq!(
        unknown.verification.signature.origin,
        Some(BundleOrigin::Browser)
    );
}

#[test]
fn bundle_whose_origin_was_removed_or_added_does_not_verify() {
    let site = Site::new();
    let (bundle, _) = site.kept(edit());
    let host = Host::new();
    let work = scratch();
    let (plain, _) = host.write(1, &random_inputs(work.path(), 3));
    let options = |trusted| VerifyOptions { trusted };
    let seen = |directory: &Path, trusted| {
        verify_bundle(&Dir::open(directory).unwrap(), &options(trusted)).signature
    };
    assert_eq!(
        seen(&plain, host.trusted()).status,
        SignatureStatus::SignedByThisHost
    );
    for (directory, trusted, origin) in [
        (&bundle, site.trusted(), None),
        (&bundle, site.trusted(), Some("sandbox")),
        (&plain, host.trusted(), Some("browser")),
    ] {
        let copy = scratch();
        copy_dir(directory, copy.path());
        let tampered = Tampered(copy.path().to_owned());
        let mut manifest = tampered.json("manifest.json");
        match origin {
            None => drop(manifest.as_object_mut().unwrap().remove("origin").unwrap()),
            Some(origin) => manifest["origin"] = origin.into(),
        }
        let text = serde_json::to_vec_pretty(&manifest).unwrap();
        fs::write(copy.path().join("manifest.json"), text).unwrap();
        let status = seen(copy.path(), trusted).status;
        assert_eq!(status, SignatureStatus::Invalid, "{origin:?}");
    }
}

#[test]
fn python_verifier_accepts_a_browser_bundle_and_refuses_it_without_its_origin() {
    let site = Site::new();
    let (bundle, _) = site.kept(edit());
    let copy = scratch();
    copy_dir(&bundle, copy.path());
    let mut manifest = json_of(&bundle, "manifest.json");
    manifest.as_object_mut().unwrap().remove("origin").unwrap();
    let text = serde_json::to_vec_pretty(&manifest).unwrap();
    fs::write(copy.path().join("manifest.json"), text).unwrap();
    let script = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/verify_bundle.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = format!("{}\n{}\n", bundle.display(), copy.path().display());
    python
        .stdin
        .take()
        .unwrap()
        .write_all(asked.as_bytes())
        .unwrap();
    let answer = python.wait_with_output().unwrap();
    let rows: Vec<Value> = String::from_utf8(answer.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows[0]["valid"], true, "{rows:?}");
    assert_eq!(rows[0]["signature"], "signed");
    assert_eq!(rows[1]["signature"], "invalid");
}

#[test]
fn upload_without_a_change_is_refused() {
    let site = Site::new();
    let same = || upload(&[("plugins/foo/foo.php", CODE)], &[]);
    assert_eq!(site.code(same()), ErrorCode::BrowserArtifactUnchanged);
    assert_eq!(
        site.code(upload(&[], &[])),
        ErrorCode::BrowserArtifactFilesMissing
    );
    let mut both = same();
    both.files.extend(edit().files.into_iter().skip(1));
    let (bundle, _) = site.kept(both);
    assert_eq!(
        changed(&bundle),
        [("new/x.js".to_owned(), "added".to_owned())]
    );
}

#[test]
fn baseline_archive_with_another_digest_or_an_escaping_path_is_refused() {
    let site = Site::new();
    let mut forged = edit();
    let BaselineSource::Archive { file, .. } = archive(&[("foo.php", 0o644, "forged\n")]) else {
        panic!("an archive");
    };
    forged.roots[0].baseline = vec![BaselineSource::Archive {
        file,
        sha256: sha256(b"what the session recorded"),
    }];
    assert_eq!(site.code(forged), ErrorCode::BrowserArtifactBaselineInvalid);
    let mut escaping = edit();
    escaping.roots[0].baseline = vec![archive(&[("../x", 0o644, "")])];
    assert_eq!(
        site.code(escaping),
        ErrorCode::BrowserArtifactBaselineInvalid
    );
    site.kept(edit());
}

#[test]
fn upload_paths_that_are_outside_the_session_or_protected_or_ambiguous_are_refused() {
    let site = Site::new();
    for path in [
        "",
        "/plugins/foo/x",
        "plugins/foo/../bar/x",
        "plugins/foo/./x",
        "plugins/foo//x",
        "plugins/foo/x\0",
        "plugins/foo/x\ny",
        "plugins/foo\\x",
        "plugins/foo/a\\b.php",
        "plugins/foo/.git/config",
        "plugins/foo/.GIT/config",
        "plugins/foo/git~1/config",
        "plugins/foo/wp-config.php",
        "plugins/foo/WP-Config.PHP",
        "plugins/foo/x.php.",
        "plugins/foo/x.php ",
        "plugins/foo/x.php::$DATA",
        "plugins/foo",
        "plugins/foobar/x.php",
        "plugins/bar/x.php",
        "mu-plugins/x.php",
        "x.php",
        "plugins/foo/link",
        "plugins/foo/link/passwd",
        "plugins/foo/inc",
        "plugins/foo/foo.php/x",
    ] {
        let code = site.code(upload(&[(path, "x")], &[]));
        assert_eq!(code, ErrorCode::BrowserArtifactPathInvalid, "{path:?}");
    }
    for path in [
        "plugins/foo/FOO.php",
        "plugins/foo/Inc/x.php",
        "plugins/foo/readme.txt",
    ] {
        let code = site.code(upload(&[(path, "x")], &[]));
        assert_eq!(code, ErrorCode::BrowserArtifactPathDuplicate, "{path:?}");
    }
    let twice = [("plugins/foo/x", "1"), ("plugins/foo/X", "2")];
    assert_eq!(
        site.code(upload(&twice, &[])),
        ErrorCode::BrowserArtifactPathDuplicate
    );
    let both = upload(&[("plugins/foo/foo.php", "1")], &["plugins/foo/foo.php"]);
    assert_eq!(site.code(both), ErrorCode::BrowserArtifactPathDuplicate);
    for path in ["plugins/foo/none", "plugins/foo/inc", "plugins/foo/link"] {
        let code = site.code(upload(&[], &[path]));
        assert_eq!(code, ErrorCode::BrowserArtifactFileInvalid, "{path}");
    }
    let fine = upload(
        &[
            ("plugins/foo/.htaccess", "Deny from all\n"),
            ("plugins/foo/ä b.txt", "x"),
        ],
        &["plugins/foo/ReadMe.txt"],
    );
    let (bundle, _) = site.kept(fine);
    assert_eq!(changed(&bundle).len(), 3);
    let review = json_of(&bundle, "files/review.json");
    let flags = review["riskFlags"].to_string();
    assert!(flags.contains("server-configuration"), "{flags}");
}

#[test]
fn root_whose_scope_is_a_list_of_files_accepts_only_these_files() {
    let site = Site::new();
    let names = ["hello.php", "second.php"];
    let single = |files: &[(&str, &str)], deleted: &[&str]| {
        let mut request = upload(files, deleted);
        let sources = names.map(|name| archive(&[(name, 0o644, "<?php // one\n")]));
        request.roots.push(ComposeRoot {
            name: "plugins".to_owned(),
            scope: ComposeScope::Files(names.map(str::to_owned).into()),
            target: GuestPath::new("/wordpress/wp-content/plugins").unwrap(),
            baseline: sources.into(),
            metadata: Some(object(json!({"origin": {"kind": "plugin-files"}}))),
        });
        request
    };
    for path in [
        "plugins/other.php",
        "plugins/Hello.php",
        "plugins/hello.php/x",
        "plugins/bar/x.php",
        "plugins/.htaccess",
        "plugins",
    ] {
        let error = site.compose(single(&[(path, "x")], &[])).unwrap_err();
        assert_eq!(
            error.code(),
            ErrorCode::BrowserArtifactPathInvalid,
            "{path}"
        );
        assert!(
            error
                .to_string()
                .contains("plugins/foo, plugins/hello.php, plugins/second.php"),
            "{error}"
        );
        let code = site.code(single(&[], &[path]));
        assert_eq!(
            code,
            ErrorCode::BrowserArtifactPathInvalid,
            "deleted {path}"
        );
    }
    let files = [
        ("plugins/hello.php", "<?php // two\n"),
        ("plugins/foo/new.php", "x\n"),
    ];
    let (bundle, _) = site.kept(single(&files, &["plugins/second.php"]));
    let row = |path: &str, status: &str| (path.to_owned(), status.to_owned());
    assert_eq!(
        changed(&bundle),
        [
            row("new.php", "added"),
            row("hello.php", "modified"),
            row("second.php", "deleted")
        ]
    );
    let document = json_of(&bundle, "files/changed-files.json");
    assert_eq!(
        document["files"][1]["path"],
        "/wordpress/wp-content/plugins/hello.php"
    );
}

#[test]
fn uploaded_file_keeps_its_baseline_mode_and_may_lie_below_the_path_of_a_deleted_file() {
    let site = Site::new();
    let request = upload(
        &[
            ("plugins/foo/bin/run", "#!/bin/sh\ntrue\n"),
            ("plugins/foo/foo.php/x", "x"),
        ],
        &["plugins/foo/foo.php"],
    );
    let (bundle, _) = site.kept(request);
    let document = json_of(&bundle, "files/changed-files.json");
    let rows = document["files"].as_array().unwrap();
    let by_path: BTreeMap<&str, &Value> = rows
        .iter()
        .map(|row| (row["relativePath"].as_str().unwrap(), row))
        .collect();
    assert_eq!(by_path["bin/run"]["beforeMode"], "100755");
    assert_eq!(by_path["bin/run"]["afterMode"], "100755");
    assert_eq!(by_path["foo.php"]["status"], "deleted");
    assert_eq!(by_path["foo.php/x"]["status"], "added");
}

#[test]
fn secret_in_an_uploaded_file_is_refused_and_one_in_a_claim_is_redacted() {
    let site = Site::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let secret = upload(&[("plugins/foo/key.txt", &token)], &[]);
    assert_eq!(site.code(secret), ErrorCode::SecretInPatch);
    let mut claimed = edit();
    claimed
        .provenance
        .insert("claims".to_owned(), json!({"note": token}));
    let (bundle, _) = site.kept(claimed);
    let metadata = fs::read_to_string(bundle.join("metadata.json")).unwrap();
    assert!(!metadata.contains(&token));
    assert!(metadata.contains("\"claims\""));
}

#[test]
fn upload_above_the_limits_is_refused() {
    let site = Site::new();
    let mut large = edit();
    large.files[0].bytes = vec![b'x'; MAX_UPLOADED_BYTES + 1];
    assert_eq!(site.code(large), ErrorCode::ArtifactTooLarge);
    let mut many = edit();
    many.deleted = (0..MAX_UPLOADED_FILES)
        .map(|number| format!("plugins/foo/{number}"))
        .collect();
    assert_eq!(site.code(many), ErrorCode::ArtifactTooLarge);
}

#[test]
fn symlinks_in_a_baseline_directory_of_this_host_are_not_followed() {
    let site = Site::new();
    let host = scratch();
    let secret = scratch();
    fs::write(secret.path().join("secret.php"), "secret").unwrap();
    fs::write(host.path().join("foo.php"), CODE).unwrap();
    fs::set_permissions(
        host.path().join("foo.php"),
        PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    symlink(secret.path(), host.path().join("out")).unwrap();
    let request = |path: &str| {
        let mut request = upload(&[(path, "<?php // new\n")], &[]);
        let directory = Dir::open(host.path()).unwrap();
        request.roots[0].baseline = vec![BaselineSource::Directory(directory)];
        request
    };
    assert_eq!(
        site.code(request("plugins/foo/out/secret.php")),
        ErrorCode::BrowserArtifactPathInvalid
    );
    let (bundle, _) = site.kept(request("plugins/foo/foo.php"));
    let document = json_of(&bundle, "files/changed-files.json");
    assert_eq!(document["files"].as_array().unwrap().len(), 1);
    assert_eq!(document["files"][0]["beforeMode"], "100755");
    assert_eq!(
        document["files"][0]["beforeSha256"],
        sha256(CODE.as_bytes()).as_str()
    );
}

#[test]
fn file_uploaded_against_an_empty_baseline_is_listed_as_added_below_its_mount_target() {
    let site = Site::new();
    let mut request = upload(&[("site/index.html", "<h1>x</h1>\n")], &[]);
    request.roots = vec![ComposeRoot {
        name: String::new(),
        target: GuestPath::new("/workspace/browser-artifact").unwrap(),
        ..root(Vec::new())
    }];
    let (bundle, _) = site.kept(request);
    let row = ("site/index.html".to_owned(), "added".to_owned());
    assert_eq!(changed(&bundle), [row]);
    let document = json_of(&bundle, "files/changed-files.json");
    assert_eq!(
        document["files"][0]["mountTarget"],
        "/workspace/browser-artifact"
    );
}

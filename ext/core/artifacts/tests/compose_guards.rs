//! Guards of the composition that only hostile or damaged baselines and stores reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;
mod uploads;

use bundles::copy_dir;
use std::fs;
use std::os::unix::fs::symlink;
use trees::scratch;
use uploads::*;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;

/// Largest file of a baseline that an upload may change, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

fn with(baseline: BaselineSource) -> ComposeRequest {
    let mut request = edit();
    request.roots = vec![root(vec![baseline])];
    request.deleted.clear();
    request
}

/// Returns an archive whose second entry, `goo.php`, has another name of the same length.
fn renamed(name: &[u8; 7]) -> BaselineSource {
    let bytes = archive_bytes(&[("foo.php", 0o644, CODE), ("goo.php", 0o644, "2\n")]);
    let mut changed = bytes.clone();
    for at in 0..bytes.len() - 7 {
        if &bytes[at..at + 7] == b"goo.php" {
            changed[at..at + 7].copy_from_slice(name);
        }
    }
    archive_of(&changed)
}

#[test]
fn baseline_archive_with_a_repeated_or_unsafe_entry_name_is_refused() {
    let site = Site::new();
    for name in [
        b"foo.php",
        b"a/../bb",
        b"/abs.ph",
        b"./a.php",
        b"a//b.ph",
        b"a/./b.p",
        b"a\0b.php",
    ] {
        let code = site.code(with(renamed(name)));
        let name = String::from_utf8_lossy(name);
        assert_eq!(code, ErrorCode::BrowserArtifactBaselineInvalid, "{name:?}");
    }
    let (bundle, _) = site.kept(with(renamed(b"a/b.php")));
    assert_eq!(changed(&bundle).len(), 2);
}

#[test]
fn baseline_with_too_many_entries_or_levels_is_refused() {
    let site = Site::new();
    let names: Vec<String> = (0..100_001).map(|number| format!("{number}")).collect();
    let entries: Vec<(&str, u32, &str)> = names.iter().map(|n| (n.as_str(), 0o644, "")).collect();
    let code = site.code(with(archive(&entries)));
    assert_eq!(code, ErrorCode::BrowserArtifactBaselineInvalid);
    let nested = |levels: usize| {
        let host = scratch();
        let deepest = host.path().join(vec!["d"; levels].join("/"));
        fs::create_dir_all(&deepest).unwrap();
        fs::write(deepest.join("x.php"), "1\n").unwrap();
        let directory = Dir::open(host.path()).unwrap();
        (host, with(BaselineSource::Directory(directory)))
    };
    let (_host, deep) = nested(65);
    assert_eq!(site.code(deep), ErrorCode::BrowserArtifactBaselineInvalid);
    let (_host, fine) = nested(64);
    site.kept(fine);
}

#[test]
fn large_file_of_a_baseline_is_refused_when_the_upload_changes_it() {
    let site = Site::new();
    let large = "x".repeat(LARGEST + 1);
    let packed = || archive(&[("foo.php", 0o644, &large), ("other.php", 0o644, "1\n")]);
    let code = site.code(with(packed()));
    assert_eq!(code, ErrorCode::BrowserArtifactBaselineInvalid);
    let host = scratch();
    fs::write(host.path().join("foo.php"), &large).unwrap();
    fs::write(host.path().join("other.php"), "1\n").unwrap();
    let plain = || BaselineSource::Directory(Dir::open(host.path()).unwrap());
    let code = site.code(with(plain()));
    assert_eq!(code, ErrorCode::BrowserArtifactBaselineInvalid);
    // The size of a file that the upload does not change does not matter.
    for baseline in [packed(), plain()] {
        let mut request = upload(&[("plugins/foo/other.php", "2\n")], &[]);
        request.roots = vec![root(vec![baseline])];
        site.compose(request).unwrap();
    }
}

#[test]
fn symlink_in_a_baseline_directory_can_be_neither_replaced_nor_deleted_by_an_upload() {
    let site = Site::new();
    let host = scratch();
    fs::write(host.path().join("foo.php"), CODE).unwrap();
    symlink("foo.php", host.path().join("link.php")).unwrap();
    let request = |files: &[(&str, &str)], deleted: &[&str]| {
        let mut request = upload(files, deleted);
        let directory = Dir::open(host.path()).unwrap();
        request.roots = vec![root(vec![BaselineSource::Directory(directory)])];
        request
    };
    let code = site.code(request(&[("plugins/foo/link.php", "x")], &[]));
    assert_eq!(code, ErrorCode::BrowserArtifactPathInvalid);
    let code = site.code(request(&[], &["plugins/foo/link.php"]));
    assert_eq!(code, ErrorCode::BrowserArtifactFileInvalid);
    site.kept(request(&[("plugins/foo/foo.php", "x")], &[]));
}

#[test]
fn overlong_and_repeated_paths_of_an_upload_are_refused() {
    let site = Site::new();
    let long = |length: usize| {
        let start = "plugins/foo/".to_owned();
        let names = vec!["d".repeat(99); 10].join("/");
        format!(
            "{start}{names}/{}",
            "f".repeat(length - start.len() - names.len() - 1)
        )
    };
    for path in [long(1025), format!("plugins/foo/{}", "n".repeat(256))] {
        let code = site.code(upload(&[(&path, "x")], &[]));
        assert_eq!(code, ErrorCode::BrowserArtifactPathInvalid);
    }
    let twice = ["plugins/foo/inc/b.php", "plugins/foo/inc/b.php"];
    assert_eq!(
        site.code(upload(&[], &twice)),
        ErrorCode::BrowserArtifactPathDuplicate
    );
    let same = [("plugins/foo/x.php", "1"), ("plugins/foo/x.php", "2")];
    assert_eq!(
        site.code(upload(&same, &[])),
        ErrorCode::BrowserArtifactPathDuplicate
    );
    let fine = [long(1024), format!("plugins/foo/{}", "n".repeat(255))];
    let files: Vec<(&str, &str)> = fine.iter().map(|path| (path.as_str(), "x")).collect();
    let (bundle, _) = site.kept(upload(&files, &["plugins/foo/inc/b.php"]));
    assert_eq!(changed(&bundle).len(), 3);
}

#[test]
fn uploaded_file_belongs_to_the_innermost_root_that_contains_its_path() {
    let site = Site::new();
    let mut request = upload(
        &[("plugins/foo/new.php", "1"), ("plugins/bar.txt", "2")],
        &[],
    );
    request.roots.insert(
        0,
        ComposeRoot {
            name: "plugins".to_owned(),
            target: GuestPath::new("/wordpress/wp-content/plugins").unwrap(),
            ..root(vec![archive(&[("x.txt", 0o644, "x")])])
        },
    );
    let (bundle, _) = site.kept(request);
    let document = json_of(&bundle, "files/changed-files.json");
    let row = |at: usize| {
        let row = &document["files"][at];
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        (text("mountTarget"), text("relativePath"))
    };
    let above = "/wordpress/wp-content/plugins".to_owned();
    assert_eq!(row(0), (above, "bar.txt".to_owned()));
    assert_eq!(row(1), (TARGET.to_owned(), "new.php".to_owned()));
}

#[test]
fn run_id_of_an_upload_depends_on_caller_contents_target_and_baseline() {
    let site = Site::new();
    let (_, first) = site.kept(edit());
    let caller = |request: &mut ComposeRequest| request.identity.push('x');
    let contents = |request: &mut ComposeRequest| request.files[0].bytes.push(b'x');
    let directory = |request: &mut ComposeRequest| {
        request.roots[0].target = GuestPath::new("/wordpress/wp-content/plugins/bar").unwrap();
    };
    let before = |request: &mut ComposeRequest| {
        request.roots[0].baseline = vec![archive(&[
            ("foo.php", 0o644, "another baseline\n"),
            ("inc/b.php", 0o644, "<?php // b\n"),
        ])];
    };
    let mode = |request: &mut ComposeRequest| {
        request.roots[0].baseline = vec![archive(&[
            ("foo.php", 0o755, CODE),
            ("inc/b.php", 0o644, "<?php // b\n"),
        ])];
    };
    let changes: [&dyn Fn(&mut ComposeRequest); 5] =
        [&caller, &contents, &directory, &before, &mode];
    let mut ids = vec![first.run_id];
    for change in changes {
        let mut request = edit();
        change(&mut request);
        let composed = site.compose(request).unwrap();
        assert_eq!(composed.status, ComposeStatus::Created, "{ids:?}");
        assert!(!ids.contains(&composed.run_id), "{ids:?}");
        ids.push(composed.run_id);
    }
    // Unchanged files of the baseline do not affect the id.
    let mut request = edit();
    request.roots[0].baseline = vec![archive(&[
        ("foo.php", 0o644, CODE),
        ("inc/b.php", 0o644, "<?php // b\n"),
        ("more.txt", 0o644, "more\n"),
    ])];
    let again = site.compose(request).unwrap();
    assert_eq!(again.run_id, ids[0]);
}

#[test]
fn stored_bundle_signed_by_another_host_or_with_an_unlisted_file_is_reported_as_damaged() {
    let (site, other) = (Site::new(), Site::new());
    let (bundle, composed) = site.kept(edit());
    let (foreign, same) = other.kept(edit());
    assert_eq!(same.run_id, composed.run_id);
    fs::remove_dir_all(&bundle).unwrap();
    copy_dir(&foreign, &bundle);
    let error = site.compose(edit()).unwrap_err();
    assert!(matches!(error, ComposeError::Damaged { .. }), "{error}");
    assert_eq!(error.code(), ErrorCode::ArtifactImportConflict);
    fs::remove_dir_all(&bundle).unwrap();
    assert_eq!(site.compose(edit()).unwrap().status, ComposeStatus::Created);
    // With an unlisted file the bundle is not valid, although its signature is.
    assert_eq!(
        site.compose(edit()).unwrap().status,
        ComposeStatus::Existing
    );
    fs::write(bundle.join("files/unlisted.txt"), "x").unwrap();
    let error = site.compose(edit()).unwrap_err();
    assert!(matches!(error, ComposeError::Damaged { .. }), "{error}");
}

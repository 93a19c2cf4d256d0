//! Tests of each feature of the overlay format. For each refused case there is a similar one that
//! is accepted.

use super::*;
use rustix::fd::AsFd;
use rustix::fs::{self as rfs, Mode, XattrFlags};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

struct Pair(tempfile::TempDir);

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("lower")).unwrap();
        fs::create_dir(dir.path().join("upper")).unwrap();
        Self(dir)
    }
    fn lower(&self, path: &str) -> std::path::PathBuf {
        self.at("lower", path)
    }
    fn upper(&self, path: &str) -> std::path::PathBuf {
        self.at("upper", path)
    }
    fn at(&self, side: &str, path: &str) -> std::path::PathBuf {
        let full = self.0.path().join(side).join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        full
    }
    fn whiteout(&self, path: &str) {
        whiteout(&self.upper(path));
    }
    fn opaque(&self, path: &str) {
        fs::create_dir_all(self.upper(path)).unwrap();
        rfs::setxattr(
            self.upper(path),
            "user.overlay.opaque",
            b"y",
            XattrFlags::empty(),
        )
        .unwrap();
    }
    fn capture_with(
        &self,
        rules: &ExcludeRules,
        limits: &CaptureLimits,
    ) -> Result<MountChanges, CaptureError> {
        let lower = Dir::open(&self.0.path().join("lower")).unwrap();
        let upper = Dir::open(&self.0.path().join("upper")).unwrap();
        capture(lower.as_fd(), upper.as_fd(), rules, limits)
    }
    fn capture(&self) -> MountChanges {
        self.capture_with(&ExcludeRules::default(), &CaptureLimits::default())
            .unwrap()
    }
}

fn whiteout(path: &Path) {
    rfs::mknodat(rfs::CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

/// Formats each change as `path:before>after`. Each side is `f` (file), `l` (link), `d` (directory)
/// or empty (no entry).
fn brief(changes: &MountChanges) -> Vec<String> {
    let kind = |node: Option<&Node>| match node {
        None => "",
        Some(Node::File { .. }) => "f",
        Some(Node::Symlink { .. }) => "l",
        Some(Node::Directory) => "d",
    };
    changes
        .entries
        .iter()
        .map(|e| {
            format!(
                "{}:{}>{}",
                String::from_utf8_lossy(&e.path),
                kind(e.change.before()),
                kind(e.change.after())
            )
        })
        .collect()
}

#[test]
fn capture_reports_added_modified_and_deleted_files_but_no_unchanged_files() {
    let pair = Pair::new();
    fs::write(pair.lower("same"), "x").unwrap();
    fs::write(pair.lower("mod"), "x").unwrap();
    fs::write(pair.lower("mode"), "x").unwrap();
    fs::write(pair.lower("gone"), "x").unwrap();
    fs::write(pair.upper("same"), "x").unwrap();
    fs::write(pair.upper("mod"), "y").unwrap();
    fs::write(pair.upper("mode"), "x").unwrap();
    fs::set_permissions(pair.upper("mode"), fs::Permissions::from_mode(0o711)).unwrap();
    fs::write(pair.upper("new"), "").unwrap();
    pair.whiteout("gone");
    pair.whiteout("never");
    let changes = pair.capture();
    assert_eq!(
        brief(&changes),
        ["gone:f>", "mod:f>f", "mode:f>f", "new:>f"]
    );
    let mode = &changes.entries[2].change;
    assert_eq!(mode.before().unwrap().git_mode(), "100644");
    assert_eq!(mode.after().unwrap().git_mode(), "100755");
}

#[test]
fn capture_reports_emptied_deleted_and_replaced_directories() {
    let pair = Pair::new();
    fs::write(pair.lower("d/keep"), "k").unwrap();
    fs::write(pair.lower("d/sub/x"), "x").unwrap();
    fs::write(pair.lower("emptied/x"), "x").unwrap();
    fs::create_dir(pair.lower("was_empty")).unwrap();
    fs::create_dir(pair.lower("empty_file")).unwrap();
    fs::write(pair.lower("whole/a"), "a").unwrap();
    fs::write(pair.lower("whole/b/c"), "c").unwrap();
    fs::write(pair.lower("opaque/old"), "o").unwrap();
    fs::write(pair.lower("opaque/both"), "o").unwrap();
    fs::write(pair.lower("opaque/dir/inner"), "o").unwrap();
    fs::write(pair.lower("tolink/x"), "x").unwrap();
    fs::write(pair.lower("tofile/x"), "x").unwrap();
    fs::write(pair.lower("todir"), "x").unwrap();
    fs::write(pair.lower("toempty"), "x").unwrap();
    fs::create_dir_all(pair.upper("d/sub")).unwrap();
    pair.whiteout("d/sub/x");
    pair.whiteout("emptied/x");
    pair.whiteout("was_empty");
    fs::write(pair.upper("empty_file"), "f").unwrap();
    pair.whiteout("whole");
    pair.opaque("opaque");
    fs::write(pair.upper("opaque/both"), "o").unwrap();
    fs::write(pair.upper("opaque/dir/fresh"), "n").unwrap();
    symlink("d", pair.upper("tolink")).unwrap();
    fs::write(pair.upper("tofile"), "f").unwrap();
    fs::write(pair.upper("todir/x"), "x").unwrap();
    fs::create_dir(pair.upper("toempty")).unwrap();
    fs::create_dir_all(pair.upper("fresh/empty")).unwrap();
    let changes = pair.capture();
    assert_eq!(
        brief(&changes),
        [
            "d/sub:>d",
            "d/sub/x:f>",
            "emptied:>d",
            "emptied/x:f>",
            "empty_file:d>f",
            "fresh/empty:>d",
            "opaque/dir/fresh:>f",
            "opaque/dir/inner:f>",
            "opaque/old:f>",
            "todir:f>",
            "todir/x:>f",
            "toempty:f>d",
            "tofile:>f",
            "tofile/x:f>",
            "tolink:>l",
            "tolink/x:f>",
            "was_empty:d>",
            "whole/a:f>",
            "whole/b/c:f>",
        ]
    );
    let removed: Vec<_> = changes
        .removed_directories
        .iter()
        .map(|p| String::from_utf8_lossy(p).into_owned())
        .collect();
    assert_eq!(removed, ["was_empty", "whole", "whole/b"]);
}

#[test]
fn directory_that_overlayfs_copied_up_without_changes_is_not_reported() {
    let pair = Pair::new();
    fs::write(pair.lower("d/x"), "x").unwrap();
    fs::create_dir(pair.lower("e")).unwrap();
    fs::create_dir(pair.upper("d")).unwrap();
    fs::create_dir(pair.upper("e")).unwrap();
    assert_eq!(pair.capture(), MountChanges::default());
}

#[test]
fn capture_lists_links_out_of_the_mount_as_omitted() {
    let pair = Pair::new();
    fs::write(pair.lower("victim"), "v").unwrap();
    symlink("/abs", pair.lower("old")).unwrap();
    symlink("/abs", pair.upper("old")).unwrap();
    for (name, target) in [
        ("abs", "/etc/passwd"),
        ("up", "../x"),
        ("a/up2", "../../x"),
        ("a/mid", "b/../../../x"),
        ("a/through", "b/.."),
        ("victim", "/etc/passwd"),
        ("a/fine", "../x"),
        ("plain", "a/fine"),
    ] {
        symlink(target, pair.upper(name)).unwrap();
    }
    let changes = pair.capture();
    assert_eq!(brief(&changes), ["a/fine:>l", "plain:>l"]);
    let omitted: Vec<_> = changes
        .omitted
        .iter()
        .map(|o| format!("{}:{}", String::from_utf8_lossy(&o.path), o.reason.as_str()))
        .collect();
    assert_eq!(
        omitted,
        [
            "a/mid:symlink-leaves-mount",
            "a/through:symlink-leaves-mount",
            "a/up2:symlink-leaves-mount",
            "abs:symlink-absolute",
            "up:symlink-leaves-mount",
            "victim:symlink-absolute",
        ]
    );
}

#[test]
fn capture_lists_special_files_as_omitted_and_does_not_block() {
    let pair = Pair::new();
    fs::write(pair.lower("pipe"), "was a file").unwrap();
    rfs::mknodat(rfs::CWD, pair.upper("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(pair.upper("sock")).unwrap();
    let changes = pair.capture();
    assert!(changes.entries.is_empty());
    assert_eq!(changes.omitted.len(), 2);
    assert!(
        changes
            .omitted
            .iter()
            .all(|o| o.reason == OmitReason::SpecialFile)
    );
}

#[test]
fn capture_lists_excluded_names_as_omitted() {
    let pair = Pair::new();
    fs::write(pair.lower(".git/HEAD"), "x").unwrap();
    fs::write(pair.lower("vendor/a"), "x").unwrap();
    fs::write(pair.lower("vendored"), "x").unwrap();
    pair.whiteout(".git");
    fs::write(pair.upper("lib/vendor/x"), "x").unwrap();
    pair.whiteout("vendor");
    fs::write(pair.upper("vendored"), "y").unwrap();
    let rules = ExcludeRules::new(&["vendor".to_owned()]);
    let changes = pair
        .capture_with(&rules, &CaptureLimits::default())
        .unwrap();
    assert_eq!(brief(&changes), ["vendored:f>f"]);
    let omitted: Vec<_> = changes.omitted.iter().map(|o| o.path.as_slice()).collect();
    assert_eq!(omitted, [&b".git"[..], b"lib/vendor", b"vendor"]);
    assert!(brief(&pair.capture()).contains(&"vendor/a:f>".to_owned()));
}

#[test]
fn capture_beyond_any_limit_fails_and_sparse_files_count_in_full() {
    let pair = Pair::new();
    let sparse = fs::File::create(pair.upper("sparse")).unwrap();
    sparse.set_len(10_000_000).unwrap();
    fs::write(pair.upper("a/b/c/d"), "xx").unwrap();
    let base = CaptureLimits::default();
    let rules = ExcludeRules::default();
    assert!(pair.capture_with(&rules, &base).is_ok());
    for (limits, what) in [
        (CaptureLimits { depth: 2, ..base }, "directory levels"),
        (CaptureLimits { entries: 4, ..base }, "entries"),
        (
            CaptureLimits {
                file_bytes: 9_999_999,
                ..base
            },
            "bytes in one file",
        ),
        (
            CaptureLimits {
                total_bytes: 10_000_001,
                ..base
            },
            "bytes",
        ),
    ] {
        match pair.capture_with(&rules, &limits) {
            Err(CaptureError::Limit { what: got, .. }) => assert_eq!(got, what),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn capture_reports_hard_links_as_files_and_preserves_non_utf8_names() {
    use std::os::unix::ffi::OsStrExt;
    let pair = Pair::new();
    fs::write(pair.upper("one"), "x").unwrap();
    fs::hard_link(pair.upper("one"), pair.upper("two")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe\n");
    fs::write(pair.upper(".").join(odd), "y").unwrap();
    let changes = pair.capture();
    let paths: Vec<_> = changes.entries.iter().map(|e| e.path.as_slice()).collect();
    assert_eq!(paths, [&b"one"[..], b"two", b"\xff\xfe\n"]);
}

#[test]
fn capture_of_a_file_with_overlay_metacopy_attribute_is_refused() {
    let pair = Pair::new();
    fs::write(pair.upper("f"), "x").unwrap();
    rfs::setxattr(
        pair.upper("f"),
        "user.overlay.metacopy",
        b"",
        XattrFlags::empty(),
    )
    .unwrap();
    assert!(matches!(
        pair.capture_with(&ExcludeRules::default(), &CaptureLimits::default()),
        Err(CaptureError::OverlayFeature { .. })
    ));
}

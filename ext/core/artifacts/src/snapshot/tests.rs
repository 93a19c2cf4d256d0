use super::copy::Copy;
use super::*;
use crate::capture::{CaptureLimits, ExcludeRules, MountChanges};
use crate::dirfd::Dir;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, XattrFlags};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::ErrorCode;

struct Fixture {
    temp: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for name in ["upper", "below", "to"] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        Self { temp }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn gone(&self, path: &str) {
        let kind = FileType::CharacterDevice;
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, self.at(path), kind, Mode::empty(), 0).unwrap();
    }

    fn opaque(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
        let flags = XattrFlags::empty();
        rustix::fs::setxattr(self.at(path), "user.overlay.opaque", b"y", flags).unwrap();
    }

    fn keep(&self) -> Result<LayerSnapshot, LayerSnapshotError> {
        let (upper, to) = (open(&self.at("upper")), open(&self.at("to")));
        snapshot_layer(upper.as_fd(), None, to.as_fd(), &CaptureLimits::TREE)
    }

    fn merge(&self) -> LayerSnapshot {
        let [upper, below, to] = ["upper", "below", "to"].map(|name| open(&self.at(name)));
        let below = Some(below.as_fd());
        snapshot_layer(upper.as_fd(), below, to.as_fd(), &CaptureLimits::TREE).unwrap()
    }

    fn verify(&self, kept: &LayerSnapshot) -> Result<(), LayerSnapshotError> {
        verify_layer(open(&self.at("to")).as_fd(), &kept.entries)
    }

    /// Returns each entry of the resulting layer as `path=content` (file), `path/` (directory,
    /// `path/!` if it is opaque), `path>target` (link) or `path-` (whiteout).
    fn shown(&self) -> Vec<String> {
        let mut all = Vec::new();
        walk(&self.at("to"), "", &mut all);
        all
    }
}

fn open(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

fn walk(dir: &Path, below: &str, all: &mut Vec<String>) {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().flatten().collect();
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let path = format!("{below}{}", entry.file_name().to_str().unwrap());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            let mut value = [0_u8; 1];
            let opaque = rustix::fs::getxattr(entry.path(), "user.overlay.opaque", &mut value);
            let mark = if opaque.is_ok() { "!" } else { "" };
            all.push(format!("{path}/{mark}"));
            walk(&entry.path(), &format!("{path}/"), all);
        } else if kind.is_symlink() {
            let to = fs::read_link(entry.path()).unwrap();
            all.push(format!("{path}>{}", to.display()));
        } else if kind.is_char_device() {
            all.push(format!("{path}-"));
        } else {
            all.push(format!(
                "{path}={}",
                fs::read_to_string(entry.path()).unwrap()
            ));
        }
    }
}

#[test]
fn capture_of_a_snapshot_layer_lists_marked_special_files_as_omitted() {
    let place = Fixture::new();
    let fifo = |path: &str| {
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, place.at(path), FileType::Fifo, mode, 0).unwrap();
    };
    place.write("source/dir/kept", "1");
    place.write("upper/dir/new", "2");
    fifo("upper/dir/kept");
    fifo("upper/pipe");
    let capture = || {
        let [source, to] = ["source", "to"].map(|name| open(&place.at(name)));
        let (rules, limits) = (ExcludeRules::default(), CaptureLimits::default());
        crate::capture::capture(source.as_fd(), to.as_fd(), &rules, &limits).unwrap()
    };
    let paths = |changes: &MountChanges| -> Vec<String> {
        let entries = changes.entries.iter();
        entries
            .map(|entry| String::from_utf8(entry.path.clone()).unwrap())
            .collect()
    };
    let kept = place.keep().unwrap();
    assert_eq!(paths(&capture()), ["dir/kept", "dir/new"]);
    mark_special_files(open(&place.at("to")).as_fd(), &kept.left_out).unwrap();
    let changes = capture();
    assert_eq!(paths(&changes), ["dir/new"]);
    let omitted: Vec<_> = changes.omitted.iter().map(|left| &left.path[..]).collect();
    assert_eq!(omitted, [&b"dir/kept"[..], b"pipe"]);
}

#[test]
fn snapshot_contains_the_files_links_and_whiteouts_of_the_upper_directory() {
    let place = Fixture::new();
    place.write("upper/dir/run.sh", "#!");
    fs::set_permissions(
        place.at("upper/dir/run.sh"),
        fs::Permissions::from_mode(0o4751),
    )
    .unwrap();
    place.write("upper/unreadable", "secret");
    fs::set_permissions(
        place.at("upper/unreadable"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    place.gone("upper/old");
    place.opaque("upper/new");
    place.write("upper/new/a", "1");
    symlink("/etc/passwd", place.at("upper/out")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.at("upper/pipe"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let before = fs::symlink_metadata(place.at("upper/dir/run.sh")).unwrap();
    let kept = place.keep().unwrap();
    let expected = [
        "dir/",
        "dir/run.sh=#!",
        "new/!",
        "new/a=1",
        "old-",
        "out>/etc/passwd",
        "pipe-",
        "unreadable=secret",
    ];
    assert_eq!(place.shown(), expected);
    assert_eq!(kept.left_out, [b"pipe".to_vec()]);
    assert_eq!(kept.bytes, 2 + 6 + 1);
    let copied = fs::symlink_metadata(place.at("to/dir/run.sh")).unwrap();
    assert_eq!(copied.mode() & 0o7777, 0o751);
    assert_eq!(
        (copied.mtime(), copied.mtime_nsec()),
        (before.mtime(), before.mtime_nsec())
    );
    // The copy made this file readable, then restored the mode that the guest had set.
    let left = fs::symlink_metadata(place.at("upper/unreadable")).unwrap();
    assert_eq!(left.mode() & 0o777, 0);
    place.verify(&kept).unwrap();
}

#[test]
fn snapshot_merges_upper_with_lower_snapshot_layer() {
    let place = Fixture::new();
    for path in [
        "both",
        "only-below",
        "dir/below",
        "gone-now",
        "replaced/x",
        "hidden/x",
        "file-now/x",
    ] {
        place.write(&format!("below/{path}"), "below");
    }
    place.gone("below/was-gone");
    place.gone("below/dir-again");
    place.opaque("below/marked");
    place.write("below/marked/x", "below");
    place.write("upper/both", "upper");
    place.write("upper/dir/upper", "upper");
    place.gone("upper/gone-now");
    place.opaque("upper/replaced");
    place.write("upper/replaced/y", "upper");
    place.gone("upper/hidden");
    place.write("upper/file-now", "upper");
    place.write("upper/dir-again/z", "upper");
    place.write("upper/marked/y", "upper");
    let kept = place.merge();
    let expected = [
        "both=upper",
        "dir/",
        "dir/below=below",
        "dir/upper=upper",
        // A whiteout in the lower layer deleted the source's directory. The directory that the
        // guest created in its place must therefore be opaque.
        "dir-again/!",
        "dir-again/z=upper",
        "file-now=upper",
        "gone-now-",
        "hidden-",
        "marked/!",
        "marked/x=below",
        "marked/y=upper",
        "only-below=below",
        "replaced/!",
        "replaced/y=upper",
        "was-gone-",
    ];
    let mut shown = place.shown();
    let mut expected = expected.map(str::to_owned).to_vec();
    shown.sort();
    expected.sort();
    assert_eq!(shown, expected);
    place.verify(&kept).unwrap();
}

#[test]
fn snapshot_layer_that_differs_from_its_file_list_is_refused() {
    type Harm = fn(&Fixture);
    let harms: [(&str, Harm); 9] = [
        ("content", |p| {
            let file = fs::read(p.at("to/a")).unwrap().len();
            fs::write(p.at("to/a"), vec![b'x'; file]).unwrap();
        }),
        ("size", |p| {
            fs::write(p.at("to/a"), "longer than it was").unwrap()
        }),
        ("mode", |p| {
            fs::set_permissions(p.at("to/a"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("missing", |p| fs::remove_file(p.at("to/a")).unwrap()),
        ("added", |p| fs::write(p.at("to/dir/more"), "").unwrap()),
        ("kind", |p| {
            fs::remove_file(p.at("to/a")).unwrap();
            fs::create_dir(p.at("to/a")).unwrap();
        }),
        ("link", |p| {
            fs::remove_file(p.at("to/link")).unwrap();
            symlink("elsewhere", p.at("to/link")).unwrap();
        }),
        ("opaque", |p| p.opaque("to/dir")),
        ("whiteout", |p| fs::remove_file(p.at("to/gone")).unwrap()),
    ];
    for (what, harm) in harms {
        let place = Fixture::new();
        place.write("upper/a", "content");
        place.write("upper/dir/b", "b");
        place.gone("upper/gone");
        symlink("a", place.at("upper/link")).unwrap();
        let kept = place.keep().unwrap();
        place.verify(&kept).unwrap();
        harm(&place);
        let error = place.verify(&kept).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SnapshotInvalid, "{what}");
    }
}

#[test]
fn snapshot_layer_with_a_modified_file_list_is_refused() {
    let place = Fixture::new();
    place.write("upper/a", "content");
    let mut kept = place.keep().unwrap();
    kept.entries.push(kept.entries[1].clone());
    assert!(place.verify(&kept).is_err());
    kept.entries.truncate(1);
    assert!(place.verify(&kept).is_err());
}

#[test]
fn snapshot_refuses_exceeded_limits_and_unsupported_overlay_features() {
    let place = Fixture::new();
    place.write("upper/a", "four");
    place.write("upper/b", "four");
    let keep = |limits: CaptureLimits| {
        let (upper, to) = (open(&place.at("upper")), place.at("to"));
        let _ = fs::remove_dir_all(&to);
        fs::create_dir(&to).unwrap();
        snapshot_layer(upper.as_fd(), None, open(&to).as_fd(), &limits)
    };
    let wide = CaptureLimits::TREE;
    keep(wide).unwrap();
    for (limits, what) in [
        (CaptureLimits { entries: 1, ..wide }, "entries"),
        (
            CaptureLimits {
                file_bytes: 3,
                ..wide
            },
            "bytes in one file",
        ),
        (
            CaptureLimits {
                total_bytes: 7,
                ..wide
            },
            "bytes",
        ),
        (
            CaptureLimits {
                path_bytes: 1,
                ..wide
            },
            "bytes in one path",
        ),
    ] {
        match keep(limits).unwrap_err() {
            LayerSnapshotError::Limit { what: found, .. } => assert_eq!(found, what),
            other => panic!("{what}: {other}"),
        }
    }
    let flags = XattrFlags::empty();
    rustix::fs::setxattr(place.at("upper/a"), "user.overlay.metacopy", b"", flags).unwrap();
    assert!(matches!(
        keep(wide),
        Err(LayerSnapshotError::OverlayFeature { .. })
    ));
}

#[test]
fn snapshot_fails_when_files_change_during_copy() {
    type Change = fn(&Fixture);
    let changes: [(&str, Change); 6] = [
        ("a file grows", |place| place.write("upper/dir/7", "longer")),
        ("a file keeps its size", |place| {
            place.write("upper/dir/7", "other");
        }),
        ("a file is replaced", |place| {
            place.write("beside", "first");
            fs::rename(place.at("beside"), place.at("upper/dir/7")).unwrap();
        }),
        ("a file is added", |place| place.write("upper/dir/8", "")),
        ("a file is removed", |place| {
            fs::remove_file(place.at("upper/dir/7")).unwrap();
        }),
        ("nothing changes, the control", |_| {}),
    ];
    for (index, (what, change)) in changes.iter().enumerate() {
        let place = Fixture::new();
        place.write("upper/dir/7", "first");
        // The kernel's time stamps advance in ticks, so a change within the tick of the file's
        // creation would not show.
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        let file = fs::File::options()
            .append(true)
            .open(place.at("upper/dir/7"));
        file.unwrap().set_modified(earlier).unwrap();
        let [upper, to] =
            ["upper", "to"].map(|name| Dir::reopen(open(&place.at(name)).as_fd()).unwrap());
        let copy = Copy::of(&upper, None, &to, &CaptureLimits::TREE).unwrap();
        change(&place);
        let ended = copy.if_unchanged(&upper);
        if index + 1 < changes.len() {
            assert!(
                matches!(ended, Err(LayerSnapshotError::Moving)),
                "{what}: {ended:?}"
            );
        } else {
            ended.expect(what);
        }
    }
}

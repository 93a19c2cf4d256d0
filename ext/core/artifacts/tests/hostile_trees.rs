//! Hostile trees without concurrent changes: every operation stays within its limits of time and
//! memory, reports what it left out, and touches nothing outside the tree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod hostile;

use hostile::*;
use rustix::fs::{CWD, FileType, Mode};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::{CodedError, ErrorCode};

const MANY: usize = 200_000;

fn node(path: &std::path::Path, kind: FileType, device: u64) {
    rustix::fs::mknodat(CWD, path, kind, Mode::RUSR | Mode::WUSR, device).unwrap();
}

#[test]
fn capture_omits_special_files_and_scan_and_copy_fail_on_them_without_opening_them() {
    let ground = Ground::new();
    let mut kinds = vec![("fifo", FileType::Fifo, 0), ("socket", FileType::Socket, 0)];
    if is_root() {
        kinds.push(("char", FileType::CharacterDevice, rustix::fs::makedev(1, 3)));
        kinds.push(("block", FileType::BlockDevice, rustix::fs::makedev(7, 0)));
    }
    for (name, kind, device) in &kinds {
        node(&ground.at("upper").join(name), *kind, *device);
        fs::write(ground.at("lower").join(name), "was a file").unwrap();
    }
    let changes = bounded("special files in a layer", 2, 8, || ground.capture()).unwrap();
    // The files of the baseline count as unchanged, and each special file is listed as omitted.
    assert_eq!(changes.entries, []);
    assert_eq!(changes.omitted.len(), kinds.len());
    assert!(
        omitted(&changes)
            .iter()
            .all(|o| o.ends_with(":special-file"))
    );
    for (name, kind, device) in &kinds {
        let ground = Ground::new();
        node(&ground.at("lower").join(name), *kind, *device);
        for error in [ground.scan().unwrap_err(), ground.copy().unwrap_err()] {
            assert_eq!(error.code(), ErrorCode::MountSpecialFile);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn copy_and_capture_treat_hard_links_as_separate_files() {
    let ground = Ground::new();
    fs::hard_link(ground.at("outside/f"), ground.at("lower/linked")).unwrap();
    // Hard links created inside the layer, as a guest can create them.
    fs::write(ground.at("upper/one"), "1").unwrap();
    fs::hard_link(ground.at("upper/one"), ground.at("upper/two")).unwrap();
    ground.copy().unwrap();
    let copy = fs::metadata(ground.at("to/linked")).unwrap();
    assert_eq!(copy.nlink(), 1, "the copy shares the inode");
    fs::write(ground.at("to/linked"), "changed").unwrap();
    let changes = ground.capture().unwrap();
    assert_eq!(changes.entries.len(), 2);
    // A file with several names counts once per name.
    fs::File::create(ground.at("upper/large"))
        .unwrap()
        .set_len(60 << 20)
        .unwrap();
    for number in 0..5_000 {
        fs::hard_link(
            ground.at("upper/large"),
            ground.at(&format!("upper/l{number}")),
        )
        .unwrap();
    }
    let error = bounded("5,000 names of one file", 20, 400, || ground.capture()).unwrap_err();
    assert!(error.to_string().contains("bytes"), "{error}");
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
}

#[test]
fn capture_counts_sparse_files_with_their_logical_size() {
    let ground = Ground::new();
    for side in ["lower", "upper"] {
        let file = fs::File::create(ground.at(side).join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
    }
    let error = bounded("a sparse tebibyte captured", 2, 8, || ground.capture()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    assert!(error.to_string().contains("bytes in one file"), "{error}");
    let error = bounded("a sparse tebibyte scanned", 2, 8, || ground.scan()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountTooLarge);
    let error = bounded("a sparse tebibyte copied", 2, 8, || ground.copy()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountTooLarge);
    // An excluded sparse file does not count.
    let rules = ExcludeRules::new(&["sparse".to_owned()]);
    let lower = ground.open("lower");
    let scan = scan_tree(lower.as_fd(), &rules, &CaptureLimits::TREE).unwrap();
    assert_eq!((scan.entries, scan.bytes), (0, 0));
    // Many sparse files, each within the limit for one file, exceed the limit for all together.
    fs::remove_file(ground.at("upper/sparse")).unwrap();
    for number in 0..100 {
        let file = fs::File::create(ground.at(&format!("upper/s{number}"))).unwrap();
        file.set_len(60 << 20).unwrap();
    }
    let error = bounded("100 sparse files", 20, 400, || ground.capture()).unwrap_err();
    assert!(error.to_string().contains("268435456 bytes"), "{error}");
}

#[test]
fn scan_copy_capture_and_removal_of_200000_files_need_bounded_time_and_memory() {
    let ground = Ground::new();
    for number in 0..MANY {
        fs::write(ground.at(&format!("lower/file-{number}")), "").unwrap();
    }
    let scan = bounded("200,000 files scanned", 30, 64, || ground.scan()).unwrap();
    assert_eq!(scan.entries, MANY as u64);
    let report = bounded("200,000 files copied", 60, 64, || ground.copy()).unwrap();
    assert_eq!(report.entries, MANY as u64);
    // The guest deleted one file; listing the others needs no memory for their contents.
    node(&ground.at("upper/file-7"), FileType::CharacterDevice, 0);
    let changes = bounded("one of 200,000 deleted", 2, 16, || ground.capture()).unwrap();
    assert_eq!(changes.entries.len(), 1);
    // The reverse cases: the guest created all files, or deleted all.
    let upper = ground.open("to");
    let lower = ground.open("upper");
    let (rules, limits) = (ExcludeRules::default(), CaptureLimits::default());
    let made = || capture(lower.as_fd(), upper.as_fd(), &rules, &limits);
    let error = bounded("200,000 files made", 5, 6, made).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    assert!(error.to_string().contains("50000 entries"), "{error}");
    fs::create_dir(ground.at("base")).unwrap();
    fs::rename(ground.at("to"), ground.at("base/all")).unwrap();
    fs::create_dir(ground.at("over")).unwrap();
    node(&ground.at("over/all"), FileType::CharacterDevice, 0);
    let (lower, upper) = (ground.open("base"), ground.open("over"));
    let gone = || capture(lower.as_fd(), upper.as_fd(), &rules, &limits);
    let error = bounded("200,000 files deleted", 5, 6, gone).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    let all = ground.at("base");
    let removed = bounded("200,000 files removed", 20, 8, || remove_tree(&all)).unwrap();
    assert_eq!(removed, MANY as u64 + 2);
}

#[test]
fn scan_copy_and_capture_of_10000_levels_are_refused_and_removal_succeeds_in_bounded_memory() {
    let ground = Ground::new();
    for side in ["lower", "upper"] {
        chain(&ground.at(side), b"d", 10_000);
    }
    let error = bounded("10,000 levels captured", 2, 16, || ground.capture()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    assert!(error.to_string().contains("64 directory levels"), "{error}");
    let error = bounded("10,000 levels scanned", 2, 16, || ground.scan()).unwrap_err();
    assert!(
        error.to_string().contains("128 directory levels"),
        "{error}"
    );
    let error = bounded("10,000 levels copied", 2, 16, || ground.copy()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountTooLarge);
    // The guest deleted a directory of the baseline that is as deep.
    remove_tree(&ground.at("upper/d")).unwrap();
    node(&ground.at("upper/d"), FileType::CharacterDevice, 0);
    let error = bounded("10,000 levels deleted", 2, 16, || ground.capture()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    let lower = ground.at("lower");
    let removed = bounded("10,000 levels removed", 10, 8, || remove_tree(&lower)).unwrap();
    assert_eq!(removed, 10_002);
}

#[test]
fn capture_accepts_paths_of_4095_bytes_and_refuses_longer_paths() {
    let ground = Ground::new();
    // 15 · 256 + 255 = 4095: the longest path that a system call accepts.
    let name = [b'n'; 255];
    chain(&ground.at("upper"), &name, 15);
    let deep = std::iter::repeat_n(&name[..], 15)
        .collect::<Vec<_>>()
        .join(&b'/');
    let longest = ground.at("upper").join(os(&deep));
    // A path from the root would be too long, so the entry is created relative to its parent.
    let parent = Dir::open(&ground.at("upper")).unwrap();
    let parent = rustix::fs::openat(
        &parent,
        os(&deep),
        rustix::fs::OFlags::RDONLY,
        Mode::empty(),
    );
    let parent = parent.unwrap();
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&parent, &name[..], flags, Mode::RUSR).unwrap();
    rustix::io::write(&file, b"deep\n").unwrap();
    assert!(
        fs::metadata(longest.join(os(&name))).is_err(),
        "the control"
    );
    let changes = bounded("a path of 4,095 bytes", 2, 8, || ground.capture()).unwrap();
    assert_eq!(changes.entries.len(), 2);
    assert_eq!(changes.entries[1].path.len(), 4095);
    let patch = render_mount_patch(&changes, "", &[]);
    // With one more byte, no system call accepts the path.
    chain(&ground.at("upper"), b"0", 0);
    rustix::fs::mkdirat(&parent, "m".repeat(250), Mode::RWXU).unwrap();
    let inner = rustix::fs::openat(
        &parent,
        "m".repeat(250),
        rustix::fs::OFlags::RDONLY,
        Mode::empty(),
    );
    rustix::fs::openat(inner.unwrap(), "12345", flags, Mode::RUSR).unwrap();
    let error = bounded("a path of 4,096 bytes", 2, 8, || ground.capture()).unwrap_err();
    assert!(
        error.to_string().contains("4095 bytes in one path"),
        "{error}"
    );
    // Git accepts a path of 4095 bytes only below its working directory, not after the name of
    // another directory.
    fs::create_dir(ground.at("judge")).unwrap();
    git_apply(&ground.at("judge"), &patch.bytes).unwrap();
    let applied = Dir::open(&ground.at("judge")).unwrap();
    let parent = rustix::fs::openat(
        &applied,
        os(&deep),
        rustix::fs::OFlags::RDONLY,
        Mode::empty(),
    );
    assert!(rustix::fs::statat(parent.unwrap(), &name[..], rustix::fs::AtFlags::empty()).is_ok());
    // The error message shortens the path.
    let lower = ground.at("lower");
    chain(&lower, &name, 12);
    let mut fifo = lower;
    for _ in 0..12 {
        fifo.push(os(&name));
    }
    node(&fifo.join("fifo"), FileType::Fifo, 0);
    let text = ground.scan().unwrap_err().to_string();
    assert!(text.len() < 1000 && text.contains("FIFO"), "{text}");
}

#[test]
fn path_bytes_count_towards_the_total_limit_of_a_capture() {
    let ground = Ground::new();
    let name = [b'n'; 250];
    chain(&ground.at("upper"), &name, 14);
    let deep = std::iter::repeat_n(&name[..], 14)
        .collect::<Vec<_>>()
        .join(&b'/');
    let parent = ground.at("upper").join(os(&deep));
    for number in 0..40_000 {
        fs::write(parent.join(format!("{number:0200}")), "").unwrap();
    }
    let error = bounded("40,000 paths of 3.7 KiB", 10, 256, || ground.capture()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CaptureLimit);
    assert!(error.to_string().contains("268435456 bytes"), "{error}");
}

/// Names that a shell, terminal, JSON parser or patch parser could misinterpret.
const NAMES: &[&[u8]] = &[
    b"new\nline",
    b"+++ b\nplugin.php",
    b"\xff\xfe\x80",
    b"\x01\x1b[31mred\x7f",
    b"\"quoted\"",
    b"back\\slash",
    b"-rf",
    b"--",
    b"a b ",
    b" lead",
    b"tab\there",
    b"*?[x]",
    b"$(id)",
    b"%41%00",
    b"Case",
    b"case",
    b"CASE",
    "na\u{ef}ve".as_bytes(),
    "nai\u{308}ve".as_bytes(),
    "\u{202e}txt.php".as_bytes(),
    b"a",
    b"b",
    b"dev",
    b"null",
    b"...",
    b".gitmodules",
    b".gitattributes",
    b"con",
];

#[test]
fn git_apply_of_a_captured_patch_restores_unusual_file_names() {
    let ground = Ground::new();
    for (number, name) in NAMES.iter().enumerate() {
        fs::write(ground.at("upper").join(os(name)), format!("{number}\n")).unwrap();
        let below = [b"dir-", *name].concat();
        fs::create_dir(ground.at("upper").join(os(&below))).unwrap();
        fs::write(ground.at("upper").join(os(&below)).join(os(name)), "x").unwrap();
        // The baseline has files with the same names after a prefix. The guest changed the files
        // with `old-` and deleted those with `gone-`.
        for prefix in [&b"old-"[..], b"gone-"] {
            let old = [prefix, name].concat();
            fs::write(ground.at("lower").join(os(&old)), "before\n").unwrap();
        }
        fs::write(
            ground.at("upper").join(os(&[b"old-", *name].concat())),
            "after\n",
        )
        .unwrap();
        let gone = ground.at("upper").join(os(&[b"gone-", *name].concat()));
        node(&gone, FileType::CharacterDevice, 0);
    }
    let changes = bounded("odd names", 2, 8, || ground.capture()).unwrap();
    assert_eq!(changes.entries.len(), 4 * NAMES.len());
    assert_eq!(changes.omitted, []);
    let patch = render_mount_patch(&changes, "", &[]);
    // Git applies the patch and turns the baseline into the guest's state.
    ground.copy().unwrap();
    git_apply(&ground.at("to"), &patch.bytes).unwrap();
    let expected: BTreeMap<_, _> = changes
        .entries
        .iter()
        .filter_map(|e| Some((e.path.clone(), e.change.after()?.blob()?.to_vec())))
        .collect();
    for (path, bytes) in &expected {
        assert_eq!(&fs::read(ground.at("to").join(os(path))).unwrap(), bytes);
    }
    let left = fs::read_dir(ground.at("to")).unwrap().count();
    assert_eq!(left, 3 * NAMES.len(), "deleted files are still there");
}

/// Names that git on some operating system treats as its own directory.
const GIT_NAMES: &[&str] = &[
    ".git",
    ".GIT",
    ".Git",
    "git~1",
    "GIT~1",
    ".git ",
    ".git.",
    ".git . .",
    ".git::$INDEX_ALLOCATION",
    ".g\u{200c}it",
    "\u{feff}.git",
];

#[test]
fn all_spellings_of_git_directories_are_omitted_from_a_capture() {
    let ground = Ground::new();
    for name in GIT_NAMES {
        for side in ["lower", "upper"] {
            let hooks = ground.at(side).join("module").join(name).join("hooks");
            fs::create_dir_all(&hooks).unwrap();
            fs::write(hooks.join("pre-commit"), format!("#!/bin/sh\n# {side}\n")).unwrap();
        }
    }
    // The `.git` file of a linked work tree, and names that only look similar.
    fs::write(ground.at("upper/.git"), "gitdir: /elsewhere\n").unwrap();
    for name in [".github", "git", ".gitignore", "git~2", "x.git"] {
        fs::write(ground.at("upper").join(name), "fine\n").unwrap();
    }
    let changes = ground.capture().unwrap();
    assert_eq!(changes.entries.len(), 5);
    let left_out = omitted(&changes);
    assert_eq!(left_out.len(), GIT_NAMES.len() + 1, "{left_out:?}");
    assert!(left_out.iter().all(|o| o.ends_with(":artifact-excluded")));
    // Control: git refuses a whole patch that names such a directory.
    let named = |path: &[u8]| MountChanges {
        entries: vec![EntryChange {
            path: path.to_vec(),
            change: Change::Added(Node::File {
                mode: FileMode::Executable,
                bytes: b"x\n".to_vec(),
            }),
        }],
        ..MountChanges::default()
    };
    fs::create_dir(ground.at("judge")).unwrap();
    for (name, refused) in [
        (".git", true),
        (".GIT", true),
        ("git~1", true),
        (".git .", true),
        ("fine", false),
    ] {
        let patch = render_mount_patch(&named(format!("{name}/hooks/x").as_bytes()), "", &[]);
        assert_eq!(
            git_apply(&ground.at("judge"), &patch.bytes).is_err(),
            refused,
            "{name}"
        );
    }
}

#[test]
fn entries_of_the_upper_directory_without_read_permission_are_captured() {
    let ground = Ground::new();
    for mode in [0o000, 0o100, 0o200, 0o300, 0o500] {
        let dir = ground.at(&format!("upper/{mode:o}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "x\n").unwrap();
        fs::set_permissions(dir.join("file"), PermissionsExt::from_mode(mode)).unwrap();
        fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
    }
    let upper = ground.open("upper");
    fs::set_permissions(ground.at("upper"), PermissionsExt::from_mode(0o000)).unwrap();
    fs::write(ground.at("lower/closed"), "x").unwrap();
    fs::set_permissions(ground.at("lower/closed"), PermissionsExt::from_mode(0o000)).unwrap();
    as_other_user(&ground, || {
        let lower = ground.open("to");
        // Control: the permission bits do apply to this user.
        assert!(fs::read_dir(ground.at("upper")).is_err());
        let (rules, limits) = (ExcludeRules::default(), CaptureLimits::default());
        let changes = capture(lower.as_fd(), upper.as_fd(), &rules, &limits).unwrap();
        let modes: Vec<_> = changes
            .entries
            .iter()
            .map(|e| {
                (
                    String::from_utf8_lossy(&e.path).into_owned(),
                    e.change.after().unwrap().git_mode(),
                )
            })
            .collect();
        let expected = [
            ("0/file", "100644"),
            ("100/file", "100755"),
            ("200/file", "100644"),
            ("300/file", "100755"),
            ("500/file", "100755"),
        ];
        assert_eq!(modes, expected.map(|(p, m)| (p.to_owned(), m)));
        // A scan changes no mode in the mount's source: an unreadable file there is an error.
        let error = ground.scan().unwrap_err();
        assert_eq!(error.code(), ErrorCode::MountUnreadable);
        let mode = fs::metadata(ground.at("lower/closed"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0);
    });
}

#[test]
fn setuid_bits_acls_and_xattrs_are_not_captured_or_copied() {
    let ground = Ground::new();
    for (name, mode) in [
        ("setuid", 0o4755),
        ("setgid", 0o2755),
        ("sticky", 0o1644),
        ("wide", 0o666),
    ] {
        for side in ["lower", "upper"] {
            let path = ground.at(side).join(name);
            fs::write(&path, side).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
    }
    let path = ground.at("lower/wide");
    rustix::fs::setxattr(&path, "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    // POSIX ACL version 2: owner rw-, user 1234 rwx, group r--, mask rwx, others r--.
    let acl: Vec<u8> = [
        (1_u16, 6_u16, u32::MAX),
        (2, 7, 1234),
        (4, 4, u32::MAX),
        (16, 7, u32::MAX),
        (32, 4, u32::MAX),
    ]
    .into_iter()
    .flat_map(|(tag, rights, id)| {
        [
            &tag.to_le_bytes()[..],
            &rights.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    })
    .collect();
    let acl = [&2_u32.to_le_bytes()[..], &acl].concat();
    let access = "system.posix_acl_access";
    rustix::fs::setxattr(&path, access, &acl, rustix::fs::XattrFlags::empty()).unwrap();
    ground.copy().unwrap();
    for entry in fs::read_dir(ground.at("to")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().mode() & 0o7000,
            0,
            "{:?}",
            entry.path()
        );
    }
    let mut value = [0_u8; 64];
    for attribute in ["user.note", access] {
        assert!(
            rustix::fs::getxattr(&path, attribute, &mut value[..]).is_ok(),
            "the control"
        );
        assert!(rustix::fs::getxattr(ground.at("to/wide"), attribute, &mut value[..]).is_err());
    }
    let changes = ground.capture().unwrap();
    let modes: Vec<_> = changes
        .entries
        .iter()
        .map(|e| e.change.after().unwrap().git_mode())
        .collect();
    assert_eq!(modes, ["100755", "100755", "100644", "100644"]);
}

#[test]
fn decompression_bombs_are_captured_without_unpacking() {
    use std::io::Write;
    let ground = Ground::new();
    // 200 MiB of zeros compressed twice: some hundred bytes that would expand to the full size.
    let mut inner = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..200 {
        inner.write_all(&vec![0_u8; 1 << 20]).unwrap();
    }
    let mut outer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    outer.write_all(&inner.finish().unwrap()).unwrap();
    let bomb = outer.finish().unwrap();
    assert!(bomb.len() < 4096);
    for name in ["bomb.tar.gz", "bomb.zip", "bomb.phar"] {
        fs::write(ground.at("upper").join(name), &bomb).unwrap();
    }
    let changes = bounded("bombs", 2, 8, || ground.capture()).unwrap();
    let patch = bounded("bombs in a patch", 2, 8, || {
        render_mount_patch(&changes, "", &[])
    });
    assert!(contents(&changes).all(|bytes| bytes == bomb));
    git_apply(&ground.at("to"), &patch.bytes).unwrap();
    assert_eq!(fs::read(ground.at("to/bomb.zip")).unwrap(), bomb);
}

#[test]
fn capture_and_copy_omit_symlinks_out_of_the_mount_without_following_them() {
    let ground = Ground::new();
    symlink("../outside", ground.at("lower/dir")).unwrap();
    symlink("../outside/f", ground.at("lower/file")).unwrap();
    symlink("/etc/passwd", ground.at("upper/abs")).unwrap();
    symlink("../../outside/f", ground.at("upper/up")).unwrap();
    symlink("x".repeat(4095), ground.at("upper/long")).unwrap();
    let changes = ground.capture().unwrap();
    assert_eq!(
        omitted(&changes),
        ["abs:symlink-absolute", "up:symlink-leaves-mount"]
    );
    assert_eq!(changes.entries.len(), 1);
    assert_eq!(ground.scan().unwrap().bytes, 0);
    let report = ground.copy().unwrap();
    assert_eq!((report.entries, report.omitted_count), (0, 2));
    ground.outside_is_whole();
}

/// The guest determines the files that are compared, so files with many lines must not take long.
#[test]
fn patch_of_files_with_many_lines_needs_bounded_time_and_memory() {
    let _alone = alone();
    let ground = Ground::new();
    fs::write(ground.at("upper/ends"), vec![b'\n'; 60 << 20]).unwrap();
    fs::write(ground.at("lower/ends"), "one\n").unwrap();
    let lines = |f: &dyn Fn(u64) -> u64| -> String {
        (0..200_000).map(|i| format!("{}\n", f(i) % 7)).collect()
    };
    // The maximum number of compared lines on both sides, all repeated: the worst case for an
    // exact search.
    fs::write(ground.at("lower/hard"), lines(&|i| i)).unwrap();
    fs::write(ground.at("upper/hard"), lines(&|i| i * i + i / 3)).unwrap();
    let changes = ground.capture().unwrap();
    let patch = measured("a patch of many lines", 30, 128, || {
        render_mount_patch(&changes, "", &[])
    });
    ground.copy().unwrap();
    git_apply(&ground.at("to"), &patch.bytes).unwrap();
    for name in ["ends", "hard"] {
        assert!(
            fs::read(ground.at("to").join(name)).unwrap()
                == fs::read(ground.at("upper").join(name)).unwrap()
        );
    }
    assert_eq!(patch.stats[&b"ends"[..]], FileStats::Binary);
    assert!(matches!(patch.stats[&b"hard"[..]], FileStats::Text { .. }));
}

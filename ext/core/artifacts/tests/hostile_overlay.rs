//! Comparison of this crate's view of hostile layers and mounts with the kernel's overlayfs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod namespaces;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use wp_codebox_artifacts::*;

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut queue = vec![root.to_owned()];
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                queue.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.insert(name.as_bytes().to_vec(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn applied(mut files: Files, changes: &MountChanges) -> Files {
    for entry in &changes.entries {
        files.remove(&entry.path);
    }
    for entry in &changes.entries {
        if let Some(bytes) = entry.change.after().and_then(Node::blob) {
            files.insert(entry.path.clone(), bytes.to_vec());
        }
    }
    files
}

fn captured(lower: &Path, upper: &Path) -> Result<MountChanges, CaptureError> {
    capture(
        Dir::open(lower).unwrap().as_fd(),
        Dir::open(upper).unwrap().as_fd(),
        &ExcludeRules::default(),
        &CaptureLimits::default(),
    )
}

/// Each attribute is set directly in the layer. The capture must see what the kernel shows, or
/// refuse the layer.
#[test]
fn capture_interprets_overlay_attributes_as_the_kernel_does_or_refuses_the_layer() {
    if !namespaces::entered(
        "capture_interprets_overlay_attributes_as_the_kernel_does_or_refuses_the_layer",
        "overlay",
    ) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    namespaces::mount("tmpfs", "size=64m", scratch.path());
    let (mut same, mut refused) = (0, 0);
    let rows: &[(&str, &str, &[u8])] = &[
        ("d", "opaque", b"y"),
        ("d", "opaque", b"n"),
        ("d", "opaque", b"x"),
        ("d", "opaque", b"yes"),
        ("d", "redirect", b"e"),
        ("d", "redirect", b"/e"),
        ("d", "impure", b"y"),
        ("d", "origin", b"x"),
        ("d", "whiteout", b""),
        ("f", "metacopy", b""),
        ("f", "whiteout", b""),
        ("f", "redirect", b"/e/g"),
        ("f", "origin", b"x"),
        ("d/f", "whiteout", b"y"),
        ("", "opaque", b"y"),
        ("", "impure", b"y"),
        ("", "redirect", b"/e"),
    ];
    for (number, (path, name, value)) in rows.iter().enumerate() {
        let root = scratch.path().join(number.to_string());
        let [lower, upper, work, merged] =
            ["lower", "upper", "work", "merged"].map(|n| root.join(n));
        for dir in ["lower/d", "lower/e", "upper/d", "work", "merged"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["f", "d/f", "d/old", "e/g"] {
            fs::write(lower.join(file), format!("lower {file}")).unwrap();
        }
        for file in ["f", "d/f", "d/new"] {
            fs::write(upper.join(file), format!("upper {file}")).unwrap();
        }
        let attribute = format!("user.overlay.{name}");
        setxattr(upper.join(path), attribute, value, XattrFlags::empty()).unwrap();
        let changes = captured(&lower, &upper);
        let options = format!(
            "userxattr,lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        namespaces::mount("overlay", &options, &merged);
        let row = format!("{name}={} on {path:?}", String::from_utf8_lossy(value));
        match changes {
            Ok(changes) => {
                assert_eq!(applied(files(&lower), &changes), files(&merged), "{row}");
                same += 1;
            }
            Err(error) => {
                assert!(
                    matches!(error, CaptureError::OverlayFeature { .. }),
                    "{row}: {error}"
                );
                refused += 1;
            }
        }
        namespaces::unmount(&merged);
    }
    println!("hostile: {same} attributes seen as the kernel does, {refused} refused");
    assert!(same >= 6 && refused >= 5);
}

/// The guest replaces a directory by a file and a file by a directory, and renames a file over
/// another one.
#[test]
fn whiteouts_and_opaque_directories_that_overlayfs_wrote_are_captured_as_changes() {
    if !namespaces::entered(
        "whiteouts_and_opaque_directories_that_overlayfs_wrote_are_captured_as_changes",
        "overlay",
    ) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    namespaces::mount("tmpfs", "size=64m", scratch.path());
    let root = scratch.path();
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|n| root.join(n));
    for dir in ["lower/a/b", "lower/c", "upper", "work", "merged"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for file in ["a/1", "a/b/2", "c/3", "4"] {
        fs::write(lower.join(file), file).unwrap();
    }
    let options = format!(
        "userxattr,lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    namespaces::mount("overlay", &options, &merged);
    fs::remove_dir_all(merged.join("a")).unwrap();
    fs::write(merged.join("a"), "a file").unwrap();
    fs::remove_file(merged.join("a")).unwrap();
    fs::create_dir(merged.join("a")).unwrap();
    fs::write(merged.join("a/b"), "b is a file").unwrap();
    fs::rename(merged.join("4"), merged.join("c/3")).unwrap();
    // The guest creates a whiteout itself and tries to set overlay attributes.
    let made = mknodat(
        CWD,
        merged.join("white"),
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    );
    println!("hostile: mknod of a whiteout in the guest: {made:?}");
    for (path, name) in [
        ("c", "opaque"),
        ("c", "redirect"),
        ("a/b", "metacopy"),
        ("a/b", "whiteout"),
    ] {
        let set = setxattr(
            merged.join(path),
            format!("user.overlay.{name}"),
            b"y",
            XattrFlags::empty(),
        );
        println!("hostile: user.overlay.{name} in the guest: {set:?}");
    }
    let seen: Files = files(&merged)
        .into_iter()
        .filter(|(name, _)| name != b"white")
        .collect();
    namespaces::unmount(&merged);
    let changes = captured(&lower, &upper).unwrap();
    assert_eq!(applied(files(&lower), &changes), seen);
    assert_eq!(seen.len(), 2);
}

/// A file system is mounted below the directory that is scanned, copied, captured and removed.
#[test]
fn capture_copy_and_removal_do_not_enter_mount_points() {
    if !namespaces::entered(
        "capture_copy_and_removal_do_not_enter_mount_points",
        "mounts",
    ) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    for dir in ["source/inner/deep", "source/other", "to", "layer"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    fs::write(root.join("source/other/f"), "x").unwrap();
    let open = |name: &str| Dir::open(&root.join(name)).unwrap();
    let rules = ExcludeRules::default();
    let scan = || scan_tree(open("source").as_fd(), &rules, &CaptureLimits::TREE);
    // Control: without the mount, the directory can be scanned.
    assert!(scan().is_ok());
    let inner = root.join("source/inner");
    namespaces::mount("tmpfs", "size=1m", &inner);
    fs::write(inner.join("marker"), "of another file system").unwrap();
    let copy = copy_tree(
        open("source").as_fd(),
        open("to").as_fd(),
        &rules,
        Links::Inside,
        &CaptureLimits::TREE,
    );
    for error in [scan().unwrap_err(), copy.unwrap_err()] {
        assert!(matches!(error, TreeError::MountPoint { .. }), "{error}");
        assert!(error.to_string().contains("inner"), "{error}");
    }
    assert!(!root.join("to/inner/marker").exists());
    // An unreadable excluded directory could contain a `.git`, so it is hidden as a whole.
    let rules = ExcludeRules::new(&["source".to_owned()]);
    let found = scan_tree(
        Dir::open(root).unwrap().as_fd(),
        &rules,
        &CaptureLimits::TREE,
    );
    let hidden = found.unwrap().left_out.hidden;
    let hidden: Vec<_> = hidden.iter().map(|h| (&h.path[..], h.reason)).collect();
    assert_eq!(hidden, [(&b"source/inner"[..], OmitReason::Unreadable)]);
    let error = captured(&root.join("layer"), &root.join("source")).unwrap_err();
    assert!(matches!(error, CaptureError::Io { .. }), "{error}");
    // The removal removes everything except the mount and reports an error.
    let error = remove_tree(&root.join("source")).unwrap_err();
    let RemovalError::Remains { path, failed, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((path.as_str(), *failed), ("source/inner", 1));
    assert!(inner.join("marker").exists() && !root.join("source/other").exists());
    namespaces::unmount(&inner);
    remove_tree(&root.join("source")).unwrap();
    assert!(!root.join("source").exists());
}

//! Removes trees that a guest can leave behind, next to files that the removal must not touch.

use super::*;
use rustix::fs::CWD;
use std::ffi::OsStr;
use std::fs as std_fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        // tmpfs, because a disk file system needs 20 s to remove 10,000 levels.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std_fs::create_dir(dir.path().join("tree")).unwrap();
        std_fs::create_dir(dir.path().join("outside")).unwrap();
        std_fs::write(dir.path().join("outside/marker"), "stays").unwrap();
        std_fs::set_permissions(dir.path().join("outside"), PermissionsExt::from_mode(0o750))
            .unwrap();
        Self { dir }
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    /// Asserts that the marker file outside the tree and the mode of its directory are unchanged.
    fn outside_is_whole(&self) {
        let outside = self.dir.path().join("outside");
        assert_eq!(
            std_fs::read_to_string(outside.join("marker")).unwrap(),
            "stays"
        );
        let mode = std_fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o750);
    }
}

/// Creates nested directories one at a time, so that no path exceeds `PATH_MAX`.
fn chain(root: &Path, name: &str, depth: usize) {
    let mut dir = Dir::open(root).unwrap();
    for _ in 0..depth {
        dir = dir.private_dir(name).unwrap();
    }
    dir.create(b"file").unwrap();
}

#[test]
fn removal_deletes_links_special_files_and_odd_names_and_nothing_outside_the_tree() {
    let place = Place::new();
    let tree = place.tree();
    for name in [
        &b"\xff\xfe"[..],
        b"new\nline",
        b"-rf",
        b"\"quoted\"",
        b"\x01",
        &[b'x'; 255],
    ] {
        let path = tree.join(OsStr::from_bytes(name));
        std_fs::create_dir(&path).unwrap();
        std_fs::write(path.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let outside = place.dir.path().join("outside");
    symlink(&outside, tree.join("link")).unwrap();
    symlink("../outside", tree.join("-rf/relative")).unwrap();
    std_fs::hard_link(outside.join("marker"), tree.join("hard")).unwrap();
    fs::mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::mknodat(
        CWD,
        tree.join("whiteout"),
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    assert_eq!(remove_tree(&tree).unwrap(), 6 * 2 + 6 + 1);
    assert!(!tree.exists());
    place.outside_is_whole();
    assert_eq!(remove_tree(&tree).unwrap(), 0);
}

#[test]
fn removal_of_a_symlink_keeps_its_target_and_removal_by_name_refuses_a_path() {
    let place = Place::new();
    let link = place.dir.path().join("link");
    symlink("outside", &link).unwrap();
    assert_eq!(remove_tree(&link).unwrap(), 1);
    place.outside_is_whole();
    let root = Dir::open(place.dir.path()).unwrap();
    for name in [&b""[..], b".", b"..", b"outside/marker", b"tree/.."] {
        let error = remove_tree_in(root.as_fd(), name).unwrap_err();
        assert!(matches!(error, RemovalError::Name { .. }), "{error}");
    }
    place.outside_is_whole();
}

/// Root ignores permission bits, so the test runs as another user.
#[test]
fn removal_deletes_trees_whose_directories_lack_owner_permissions() {
    let place = Place::new();
    let tree = place.tree();
    for mode in [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600] {
        let path = tree.join(format!("{mode:o}/inner"));
        std_fs::create_dir_all(&path).unwrap();
        std_fs::write(path.join("file"), "x").unwrap();
        std_fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        std_fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(mode)).unwrap();
    }
    let root = rustix::process::geteuid().is_root();
    if root {
        for path in [place.dir.path().to_owned(), tree.clone()] {
            fs::chown(path, Some(rustix::fs::Uid::from_raw(12_345)), None).unwrap();
        }
        let chowned = std::process::Command::new("chown")
            .args(["-R", "12345:12345"])
            .arg(&tree)
            .status()
            .unwrap();
        assert!(chowned.success());
    }
    // setresuid as a raw system call changes the user of this thread only.
    let path = tree.clone();
    let removed = std::thread::spawn(move || {
        if root {
            let nobody = rustix::process::Uid::from_raw(12_345);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            // Control: std cannot remove the tree because of its modes.
            assert!(std_fs::remove_dir_all(&path).is_err());
        }
        remove_tree(&path)
    })
    .join()
    .unwrap();
    assert_eq!(removed.unwrap(), 7 * 3 + 1);
    assert!(!tree.exists());
    place.outside_is_whole();
}

/// The test starts itself again in a process with a low descriptor limit and a small stack.
#[test]
fn removal_of_deep_tree_needs_constant_descriptors_and_stack() {
    const FEW: &str = "CODEBOX_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(FEW).is_none() {
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 24 && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "--test-threads=1"])
            .arg("removal::tests::removal_of_deep_tree_needs_constant_descriptors_and_stack")
            .env(FEW, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let place = Place::new();
    let tree = place.tree();
    chain(&tree, "d", 10_000);
    // Longer than PATH_MAX: no path in a system call can reach the last level.
    chain(&tree, &"n".repeat(255), 200);
    let removed = std::thread::Builder::new()
        .stack_size(192 * 1024)
        .spawn({
            let tree = tree.clone();
            move || {
                // Control: std needs one descriptor per level and exceeds the limit.
                assert!(std_fs::remove_dir_all(&tree).is_err());
                remove_tree(&tree)
            }
        })
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(removed.unwrap(), 10_200 + 2 + 1);
    place.outside_is_whole();
}

#[test]
fn removal_deletes_more_subdirectories_than_fit_into_one_batch() {
    let place = Place::new();
    let tree = place.tree();
    for number in 0..3 * BATCH {
        std_fs::create_dir(tree.join(number.to_string())).unwrap();
        if number % 8 == 0 {
            std_fs::write(tree.join(format!("{number}/f")), "").unwrap();
        }
    }
    let all = 3 * BATCH + 3 * BATCH / 8 + 1;
    assert_eq!(remove_tree(&tree).unwrap(), all as u64);
}

/// Simulates the race between stat and open: a link has replaced the directory.
#[test]
fn removal_does_not_follow_or_chmod_a_link_that_replaced_a_directory() {
    let place = Place::new();
    symlink("../outside", place.tree().join("link")).unwrap();
    let tree = Dir::open(&place.tree()).unwrap();
    assert!(tree.dir_owned(b"link").is_err());
    assert!(tree.grant_owner(b"link", Mode::RWXU).is_err());
    assert!(tree.grant_owner(b"link/inner", Mode::RWXU).is_err());
    place.outside_is_whole();
}

//! Tests of paths for which no project can be determined.

use super::{PLUGIN, Tree};
use crate::find::Reach;
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use wp_codebox_contracts::{CodedError, ErrorCode};

#[test]
fn missing_path_or_path_of_a_file_is_refused_with_a_code_and_a_hint() {
    let tree = Tree::new(&[("code/hello/hello.php", PLUGIN)]);
    for path in [
        "code/missing",
        "code/hello/hello.php",
        "code/hello/hello.php/x",
    ] {
        for found in [tree.around(path), tree.of(path)] {
            let body = found.unwrap_err().body();
            assert_eq!(body.code, ErrorCode::MountSourceInvalid, "{path}");
            assert!(
                !body.hints.is_empty() && body.message.contains("code/"),
                "{path}"
            );
        }
    }
    assert!(tree.around("code/hello").is_ok());
}

/// A colon separates the parts of `--mount`.
#[test]
fn project_path_with_a_colon_or_a_control_character_is_refused() {
    let tree = Tree::new(&[
        ("a:b/hello/hello.php", PLUGIN),
        ("code/a:b/hello.php", PLUGIN),
        ("code/a\u{1b}b/hello.php", PLUGIN),
        ("code/a\nb/hello.php", PLUGIN),
        ("code/hello/a:b/", ""),
        ("code/größe x/größe x.php", PLUGIN),
    ]);
    for path in ["a:b/hello", "code/a:b", "code/a\u{1b}b", "code/a\nb"] {
        let body = tree.around(path).unwrap_err().body();
        assert_eq!(body.code, ErrorCode::InputInvalid, "{path:?}");
        assert!(!body.message.contains(['\u{1b}', '\n']), "{path:?}");
        assert!(body.hints[0].contains("rename"), "{path:?}");
    }
    // Positive controls: a colon below the project's root does not matter, and other characters are
    // accepted.
    assert_eq!(
        tree.place("code/hello/a:b"),
        ErrorCode::InputInvalid.to_string()
    );
    tree.write("code/hello/hello.php", PLUGIN);
    assert_eq!(tree.place("code/hello/a:b"), "code/hello -> plugins/hello");
    assert_eq!(tree.place("code/größe x"), "code/größe x -> plugins/gr-e-x");
}

#[test]
fn unreadable_start_directory_is_refused_and_an_unreadable_directory_above_is_skipped() {
    let tree = Tree::new(&[
        ("code/hello/hello.php", PLUGIN),
        ("code/hello/inc/", ""),
        ("code/hello/inc/secret/", ""),
    ]);
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(tree.at(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("code/hello/inc/secret", 0o000);
    mode("code/hello/inc", 0o311);
    // Check this only if the process is not root: root can read the directories in any case.
    if !geteuid().is_root() {
        for path in ["code/hello/inc", "code/hello/inc/secret"] {
            let body = tree.around(path).unwrap_err().body();
            assert_eq!(body.code, ErrorCode::MountUnreadable, "{path}");
            assert!(body.hints[0].contains("read access"));
        }
    }
    mode("code/hello/inc/secret", 0o755);
    let project = tree.place("code/hello/inc/secret");
    assert_eq!(project, "code/hello -> plugins/hello");
    mode("code/hello/inc", 0o755);
}

#[test]
fn path_that_is_not_utf8_is_refused() {
    let tree = Tree::new(&[("code/", "")]);
    let path = tree.at("code").join(OsStr::from_bytes(b"a\xff"));
    fs::create_dir(&path).unwrap();
    for reach in [Reach::Upward, Reach::Here] {
        let body = tree.find(&path, reach).unwrap_err().body();
        assert_eq!(body.code, ErrorCode::InputInvalid);
        assert!(body.message.contains("UTF-8"), "{}", body.message);
    }
}

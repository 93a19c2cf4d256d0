//! Copy-on-write views of host directories, and the layers (overlay upper directories) that contain
//! what the guest changed in them.

use crate::fixture::*;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use wp_codebox_backend_native::{KillCause, LaunchError, WP_CONTENT_LAYER};
use wp_codebox_contracts::{
    BindSource, CodedError, GuestPath, HostSource, LaunchMount, MountAccess, MountView, StagedFile,
};

fn plugin() -> PathBuf {
    let path = directory("plugin");
    fs::create_dir(path.join("sub")).unwrap();
    fs::write(path.join("demo.php"), "<?php // v1\n").unwrap();
    fs::write(path.join("sub/old.txt"), "old\n").unwrap();
    fs::write(path.join("gone.txt"), "gone\n").unwrap();
    path
}

fn names(layer: BorrowedFd<'_>, below: &str) -> Vec<(String, FileType)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = rustix::fs::openat(layer, below, flags, Mode::empty()).unwrap();
    let mut all: Vec<_> = Dir::read_from(&fd)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().to_str().unwrap().to_owned(),
                entry.file_type(),
            )
        })
        .filter(|(name, _)| name != "." && name != "..")
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn overlay_changes_stay_in_the_upper_layer_and_show_at_target_and_workspace_path() {
    let source = plugin();
    let before = tree(&source);
    let target = "/wordpress/wp-content/plugins/demo";
    let spec = Spec {
        mounts: vec![mount(0, &source, target)],
        ..Spec::default()
    };
    let mut guest = spec.launch();
    let script = format!(
        "set -e; cd /workspace/demo; echo '<?php // v2' > demo.php; mkdir new; echo n > new/n.txt; rm gone.txt; \
         mv sub/old.txt sub/moved.txt; cat {target}/demo.php; ls {target}; echo x > {target}/from-target; cat from-target"
    );
    let result = sh(&mut guest, &script).ok();
    assert_eq!(result, "<?php // v2\ndemo.php\nnew\nsub\nx\n");
    assert!(guest.layer(0).is_some() && guest.layer(1).is_none());
    guest.kill(KillCause::Finished);
    assert_eq!(tree(&source), before, "the host's directory is as it was");
    let layer = guest.layer(0).unwrap();
    let found = names(layer, ".");
    let expected = [
        ("demo.php", FileType::RegularFile),
        ("from-target", FileType::RegularFile),
        ("gone.txt", FileType::CharacterDevice),
        ("new", FileType::Directory),
        ("sub", FileType::Directory),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(
        names(layer, "sub").len(),
        2,
        "moved, and the old name whited out"
    );
    assert!(guest.layer(WP_CONTENT_LAYER).is_some());
}

#[test]
fn readonly_mount_can_be_read_but_not_written() {
    let source = plugin();
    let before = tree(&source);
    let mut readonly = mount(0, &source, "/workspace/ro");
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    let other = plugin();
    let spec = Spec {
        mounts: vec![readonly, mount(1, &other, "/workspace/rw")],
        ..Spec::default()
    };
    let mut guest = spec.launch();
    let write = "cat demo.php && echo x > demo.php";
    for (directory, code) in [("ro", 2), ("rw", 0)] {
        let result = sh(&mut guest, &format!("cd /workspace/{directory} && {write}"));
        assert_eq!(
            (result.out.as_str(), result.code()),
            ("<?php // v1\n", code),
            "{directory}"
        );
    }
    assert!(guest.layer(0).is_none());
    drop(guest);
    assert_eq!(tree(&source), before);
}

#[test]
fn first_lower_directory_of_a_mount_replaces_and_deletes_files_of_the_mount_source() {
    let source = plugin();
    let change = directory("change");
    fs::write(change.join("demo.php"), "<?php // v2\n").unwrap();
    // SAFETY: creates one whiteout device as overlayfs would; the path is a valid C string.
    let made = unsafe {
        let path = std::ffi::CString::new(change.join("gone.txt").to_str().unwrap()).unwrap();
        libc::mknod(path.as_ptr(), libc::S_IFCHR, 0)
    };
    assert_eq!(made, 0);
    let mut mounted = mount(0, &source, "/workspace/demo");
    mounted
        .lowers
        .insert(0, HostSource::of(change.to_str().unwrap()));
    let mut guest = Spec {
        mounts: vec![mounted],
        ..Spec::default()
    }
    .launch();
    assert_eq!(
        sh(&mut guest, "cd /workspace/demo; cat demo.php; ls").ok(),
        "<?php // v2\ndemo.php\nsub\n"
    );
}

#[test]
fn colon_and_comma_in_host_paths_are_not_parsed_as_mount_options() {
    let source = directory("od,d:na=me \\x");
    fs::write(source.join("f"), "yes").unwrap();
    let mut guest = Spec {
        mounts: vec![mount(0, &source, "/workspace/odd")],
        ..Spec::default()
    }
    .launch();
    assert_eq!(
        sh(
            &mut guest,
            "echo no > /workspace/odd/g; cat /workspace/odd/f"
        )
        .ok(),
        "yes"
    );
    assert_eq!(fs::read_dir(&source).unwrap().count(), 1);
}

#[test]
fn staged_files_are_readable_and_not_writable() {
    let file = directory("staged").join("tool.sh");
    fs::write(&file, "echo tool\n").unwrap();
    let staged = vec![StagedFile {
        source: file.to_str().unwrap().to_owned(),
        target: "/run/codebox/staged/0-tool.sh".to_owned(),
    }];
    let mut guest = Spec {
        staged,
        ..Spec::default()
    }
    .launch();
    let target = "/run/codebox/staged/0-tool.sh";
    assert_eq!(run(&mut guest, &["sh", target]).ok(), "tool\n");
    assert_ne!(sh(&mut guest, &format!("echo x > {target}")).code(), 0);
    assert_ne!(sh(&mut guest, "echo x > /run/codebox/staged/new").code(), 0);
    assert_eq!(
        sh(&mut guest, "cat /run/codebox/task.json").ok(),
        "{\"goal\":\"test\"}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "echo tool\n");
}

#[test]
fn missing_mount_source_fails_the_launch_and_names_only_the_guest_path() {
    let mut plan = Spec::default().plan();
    plan.mounts.push(LaunchMount::Bind {
        source: BindSource::Host(HostSource::of("/nonexistent/host/path")),
        target: GuestPath::new("/workspace/x").unwrap(),
        writable: false,
    });
    let error = launch(&plan).unwrap_err();
    let LaunchError::Step {
        step,
        subject,
        errno,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (step.as_str(), subject.as_str(), *errno),
        ("bind", "/workspace/x", libc::ENOENT)
    );
    assert!(!error.body().hints.is_empty());
    plan.mounts.pop();
    launch(&plan).unwrap();
}

#[test]
fn mount_point_behind_a_symlink_is_refused() {
    let source = directory("linked");
    std::os::unix::fs::symlink("/tmp", source.join("link")).unwrap();
    let mut plan = Spec {
        mounts: vec![mount(0, &source, "/workspace/l")],
        ..Spec::default()
    }
    .plan();
    plan.mounts.push(LaunchMount::Scratch {
        target: GuestPath::new("/workspace/l/link/deep").unwrap(),
        mode: 0o755,
    });
    let error = launch(&plan).unwrap_err();
    assert!(
        matches!(&error, LaunchError::Step { step, .. } if step == "target"),
        "{error}"
    );
    plan.mounts.pop();
    plan.mounts.push(LaunchMount::Scratch {
        target: GuestPath::new("/workspace/l/real/deep").unwrap(),
        mode: 0o755,
    });
    launch(&plan).unwrap();
}

#[test]
fn layers_stay_readable_after_the_guest_is_killed() {
    let source = plugin();
    let mut guest = Spec {
        mounts: vec![mount(3, &source, "/workspace/p")],
        ..Spec::default()
    }
    .launch();
    sh(&mut guest, "echo kept > /workspace/p/kept").ok();
    guest.kill(KillCause::Finished);
    let layer = guest.layer(3).unwrap();
    let fd = rustix::fs::openat2(
        layer,
        "kept",
        OFlags::RDONLY,
        Mode::empty(),
        rustix::fs::ResolveFlags::BENEATH
            | rustix::fs::ResolveFlags::NO_SYMLINKS
            | rustix::fs::ResolveFlags::NO_XDEV
            | rustix::fs::ResolveFlags::NO_MAGICLINKS,
    )
    .unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(
        &mut fs::File::from(fd.as_fd().try_clone_to_owned().unwrap()),
        &mut text,
    )
    .unwrap();
    assert_eq!(text, "kept\n");
}

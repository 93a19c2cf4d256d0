//! Tests that apply and undo changes in temporary directories.

#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};
use trees::{Bench, added, changes, deleted, executable, file, link, modified, tree};
use wp_codebox_apply::{ApplyError, KeepLimit, KeepRules, TargetChanges};
use wp_codebox_artifacts::{Change, EntryChange, MountChanges, Node};

/// Writes files into the target and returns a change of them that contains every kind of change.
fn every_kind(bench: &Bench) -> MountChanges {
    bench.write("keep.txt", b"kept\n");
    bench.write("text.php", b"<?php\necho 1;\n");
    bench.write("gone/deep/old.txt", b"old\n");
    bench.write("run.sh", b"#!/bin/sh\n");
    bench.write("becomes-directory", b"file\n");
    bench.write("becomes-file/inner.txt", b"inner\n");
    bench.write("becomes-link", b"plain\n");
    symlink("keep.txt", bench.path("points")).unwrap();
    fs::create_dir(bench.path("empty")).unwrap();
    changes(vec![
        modified(
            "text.php",
            file(b"<?php\necho 1;\n"),
            file(b"<?php\necho 2;\n"),
        ),
        deleted("gone/deep/old.txt", file(b"old\n")),
        added("new/dir/b.bin", file(b"\0\x01")),
        modified("run.sh", file(b"#!/bin/sh\n"), executable(b"#!/bin/sh\n")),
        deleted("becomes-directory", file(b"file\n")),
        added("becomes-directory/now.txt", file(b"now\n")),
        deleted("becomes-file/inner.txt", file(b"inner\n")),
        added("becomes-file", file(b"flat\n")),
        modified("becomes-link", file(b"plain\n"), link("keep.txt")),
        modified("points", link("keep.txt"), link("text.php")),
        deleted("empty", Node::Directory),
        added("made-empty", Node::Directory),
    ])
}

#[test]
fn apply_makes_every_kind_of_change_and_undo_restores_the_tree() {
    let bench = Bench::new();
    let changes = every_kind(&bench);
    let before = tree(&bench.target);
    let applied = bench.apply(changes).unwrap();
    let after = tree(&bench.target);
    let text = |path: &str| fs::read(bench.path(path)).unwrap();
    let points_to = |path: &str| fs::read_link(bench.path(path)).unwrap();
    assert_eq!(text("text.php"), b"<?php\necho 2;\n");
    assert_eq!(text("new/dir/b.bin"), b"\0\x01");
    assert_eq!(text("becomes-directory/now.txt"), b"now\n");
    assert_eq!(text("becomes-file"), b"flat\n");
    assert_eq!(points_to("becomes-link"), Path::new("keep.txt"));
    assert_eq!(points_to("points"), Path::new("text.php"));
    assert!(!bench.path("gone").exists() && !bench.path("empty").exists());
    assert!(bench.path("made-empty").is_dir());
    let mode = fs::metadata(bench.path("run.sh")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(
        !after.keys().any(|name| name.contains(".wp-codebox")),
        "{after:?}"
    );
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.conflicts, []);
    assert_eq!(tree(&bench.target), before);
    let again = bench.undo(&applied.id, None);
    assert!(matches!(again, Err(ApplyError::Undone { .. })), "{again:?}");
}

#[test]
fn replaced_file_keeps_owner_attributes_and_mode_except_for_changed_execute_permission() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    let path = bench.path("a.php");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(4321), Some(4322)).unwrap();
    }
    let attribute = setxattr(&path, "user.note", b"kept", XattrFlags::empty());
    let change = modified("a.php", file(b"1\n"), executable(b"2\n"));
    let applied = bench.apply(changes(vec![change])).unwrap();
    let check = |mode: u32| {
        let now = fs::metadata(&path).unwrap();
        assert_eq!(now.mode() & 0o7777, mode);
        if root {
            assert_eq!((now.uid(), now.gid()), (4321, 4322));
        }
        if attribute.is_ok() {
            let mut value = [0_u8; 16];
            let length = getxattr(&path, "user.note", &mut value).unwrap();
            assert_eq!(&value[..length], b"kept");
        }
    };
    check(0o750);
    bench.undo(&applied.id, None).unwrap();
    check(0o640);
}

#[test]
fn changed_file_is_a_conflict_and_nothing_is_applied() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    bench.write("b.php", b"edited meanwhile\n");
    let before = tree(&bench.target);
    let change = || {
        changes(vec![
            modified("a.php", file(b"1\n"), file(b"2\n")),
            modified("b.php", file(b"1\n"), file(b"2\n")),
        ])
    };
    match bench.apply(change()) {
        Err(ApplyError::Conflict {
            count: 1, first, ..
        }) => assert_eq!(first, "b.php"),
        other => panic!("{other:?}"),
    }
    assert_eq!(tree(&bench.target), before);
    bench.write("b.php", b"1\n");
    bench.apply(change()).unwrap();
}

/// Function that writes the target's files, and a change that conflicts with them.
type Case = (fn(&Bench), EntryChange);

#[test]
fn path_in_an_unexpected_state_is_a_conflict() {
    let cases: [Case; 4] = [
        (|b| b.write("a", b"there\n"), added("a", file(b"new\n"))),
        (|_| (), deleted("a", file(b"old\n"))),
        (
            |b| {
                b.write("real/x", b"old\n");
                symlink("real", b.path("a")).unwrap();
            },
            modified("a/x", file(b"old\n"), file(b"new\n")),
        ),
        (|b| b.write("a/kept", b"kept\n"), added("a", file(b"new\n"))),
    ];
    for (prepare, change) in cases {
        let bench = Bench::new();
        prepare(&bench);
        let before = tree(&bench.target);
        let result = bench.apply(changes(vec![change.clone()]));
        let conflict = matches!(result, Err(ApplyError::Conflict { .. }));
        assert!(conflict, "{change:?} {result:?}");
        assert_eq!(tree(&bench.target), before);
        assert_eq!(bench.journal().recover().unwrap().len(), 0);
    }
}

#[test]
fn undo_keeps_a_file_edited_after_the_apply_and_restores_the_others() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    bench.write("b.php", b"1\n");
    let change = changes(vec![
        modified("a.php", file(b"1\n"), file(b"2\n")),
        modified("b.php", file(b"1\n"), file(b"2\n")),
        added("c.php", file(b"3\n")),
    ]);
    let applied = bench.apply(change).unwrap();
    bench.write("b.php", b"mine\n");
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.restored, ["a.php", "c.php"]);
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(fs::read(bench.path("b.php")).unwrap(), b"mine\n");
    assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"1\n");
    // Once the file again has the contents that the apply wrote, it can be undone.
    bench.write("b.php", b"2\n");
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.restored, ["b.php"]);
    assert_eq!(report.conflicts, []);
}

#[test]
fn undo_of_one_file_leaves_the_other_applied_and_undo_of_an_unknown_file_is_refused() {
    let bench = Bench::new();
    let change = changes(vec![
        added("d/a.txt", file(b"a\n")),
        added("d/b.txt", file(b"b\n")),
    ]);
    let applied = bench.apply(change).unwrap();
    let one = ["d/a.txt".to_owned()];
    bench.undo(&applied.id, Some(&one)).unwrap();
    assert!(!bench.path("d/a.txt").exists() && bench.path("d/b.txt").exists());
    let unknown = ["d/c.txt".to_owned()];
    let refused = bench.undo(&applied.id, Some(&unknown));
    assert!(
        matches!(refused, Err(ApplyError::NotFound { .. })),
        "{refused:?}"
    );
    bench.undo(&applied.id, None).unwrap();
    assert!(!bench.path("d").exists());
    let undone = bench.journal().applied(&applied.id).unwrap().undone;
    assert_eq!(undone.len(), 2);
}

/// Applies a change of the same two files to two targets. Returns the second target and the applied
/// change.
fn two_targets(bench: &Bench) -> (std::path::PathBuf, wp_codebox_apply::AppliedChange) {
    let second = bench.site.join("second");
    fs::create_dir(&second).unwrap();
    let target = |mount: &str, path: &Path| TargetChanges {
        mount: mount.to_owned(),
        path: path.to_owned(),
        changes: changes(vec![
            added("d/a.txt", file(mount.as_bytes())),
            added("b.txt", file(mount.as_bytes())),
        ]),
    };
    let both = vec![
        target("/workspace/x", &bench.target),
        target("/workspace/y", &second),
    ];
    let applied = bench.apply_to(both).unwrap();
    (second, applied)
}

#[test]
fn file_that_two_targets_contain_is_undone_only_at_the_given_guest_path() {
    let bench = Bench::new();
    let (second, applied) = two_targets(&bench);
    let all = ["b.txt", "d/a.txt"];
    let named = ["/workspace/x/", "/workspace/y/"]
        .iter()
        .flat_map(|mount| all.map(|path| format!("{mount}{path}")));
    let mut files = applied.files.clone();
    files.sort();
    assert_eq!(files, named.collect::<Vec<_>>());

    let both = ["d/a.txt".to_owned()];
    match bench.undo(&applied.id, Some(&both)) {
        Err(ApplyError::Ambiguous { names, .. }) => {
            assert_eq!(names, ["/workspace/x/d/a.txt", "/workspace/y/d/a.txt"]);
        }
        other => panic!("{other:?}"),
    }
    assert!(bench.path("d/a.txt").exists() && second.join("d/a.txt").exists());

    let one = ["/workspace/y/d/a.txt".to_owned()];
    let report = bench.undo(&applied.id, Some(&one)).unwrap();
    assert_eq!(report.restored, one);
    assert!(bench.path("d/a.txt").exists() && !second.join("d").exists());
    let undone = bench.journal().applied(&applied.id).unwrap().undone;
    assert_eq!(undone, one);
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.restored.len(), 3);
    assert!(!bench.path("d").exists() && !second.join("b.txt").exists());
}

#[test]
fn conflict_of_a_path_that_two_targets_contain_is_reported_with_its_guest_path() {
    let bench = Bench::new();
    let (second, applied) = two_targets(&bench);
    fs::write(second.join("b.txt"), b"mine\n").unwrap();
    let report = bench.undo(&applied.id, None).unwrap();
    let conflicts: Vec<_> = report.conflicts.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(conflicts, ["/workspace/y/b.txt"]);
    assert!(report.restored.contains(&"/workspace/x/b.txt".to_owned()));
    let undone = bench.journal().applied(&applied.id).unwrap().undone;
    assert_eq!(undone.len(), 3);
    assert!(!undone.contains(&"/workspace/y/b.txt".to_owned()));
    assert!(!bench.path("b.txt").exists() && second.join("b.txt").exists());
}

#[test]
fn apply_to_a_locked_target_is_refused() {
    let bench = Bench::new();
    let lock = fs::File::open(&bench.target).unwrap();
    let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&lock, exclusive).unwrap();
    let change = || changes(vec![added("a", file(b"a\n"))]);
    let refused = bench.apply(change());
    assert!(
        matches!(refused, Err(ApplyError::Busy { .. })),
        "{refused:?}"
    );
    drop(lock);
    bench.apply(change()).unwrap();
}

#[test]
fn two_targets_are_changed_together_or_not_at_all() {
    let bench = Bench::new();
    let other = tempfile::tempdir().unwrap();
    bench.write("a", b"1\n");
    let both = |first: &[u8]| {
        vec![
            TargetChanges {
                mount: "/workspace/two".to_owned(),
                path: other.path().to_owned(),
                changes: changes(vec![added("b", file(b"b\n"))]),
            },
            TargetChanges {
                mount: "/workspace/one".to_owned(),
                path: bench.target.clone(),
                changes: changes(vec![modified("a", file(first), file(b"2\n"))]),
            },
        ]
    };
    assert!(bench.apply_to(both(b"not this\n")).is_err());
    assert!(!other.path().join("b").exists());
    let applied = bench.apply_to(both(b"1\n")).unwrap();
    assert!(other.path().join("b").exists());
    bench.undo(&applied.id, None).unwrap();
    assert!(!other.path().join("b").exists());
}

#[test]
fn undo_refuses_forged_old_contents_and_a_journal_of_another_user() {
    let bench = Bench::new();
    bench.write("a", b"1\n");
    let change = modified("a", file(b"1\n"), file(b"2\n"));
    let applied = bench.apply(changes(vec![change])).unwrap();
    let user = rustix::process::geteuid().as_raw().to_string();
    let done = bench.site.join("applies").join(user).join("done");
    let done = done.join(applied.id.as_str());
    let refused = || {
        matches!(
            bench.undo(&applied.id, None),
            Err(ApplyError::Journal { .. })
        )
    };
    fs::write(done.join("old/000000"), b"forged\n").unwrap();
    assert!(refused());
    fs::write(done.join("old/000000"), b"1\n").unwrap();
    if rustix::process::geteuid().is_root() {
        let journal = done.join("journal.json");
        std::os::unix::fs::chown(&journal, Some(4321), None).unwrap();
        assert!(refused());
        std::os::unix::fs::chown(&journal, Some(0), None).unwrap();
    }
    bench.undo(&applied.id, None).unwrap();
    assert_eq!(fs::read(bench.path("a")).unwrap(), b"1\n");
}

#[test]
fn change_of_a_file_whose_name_is_not_utf8_is_applied_and_undone() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let name = b"caf\xe9 \"x\"\n.txt";
    let change = EntryChange {
        path: name.to_vec(),
        change: Change::Added(file(b"x\n")),
    };
    let applied = bench.apply(changes(vec![change])).unwrap();
    let path = bench.target.join(std::ffi::OsStr::from_bytes(name));
    assert!(path.exists());
    bench.undo(&applied.id, None).unwrap();
    assert!(!path.exists());
}

#[test]
fn full_disk_leaves_the_target_unchanged() {
    let Some(small) = trees::SmallDisk::new(256 * 1024) else {
        eprintln!("skipped: a tmpfs cannot be mounted by this user");
        return;
    };
    let bench = Bench::at(small.path());
    bench.write("a", b"1\n");
    let before = tree(&bench.target);
    let big = vec![b'x'; 512 * 1024];
    let refused = bench.apply(changes(vec![
        modified("a", file(b"1\n"), file(b"2\n")),
        added("big", file(&big)),
    ]));
    assert!(matches!(refused, Err(ApplyError::Io { .. })), "{refused:?}");
    assert_eq!(tree(&bench.target), before);
    let change = modified("a", file(b"1\n"), file(b"2\n"));
    bench.apply(changes(vec![change])).unwrap();
}

#[test]
fn changes_beyond_the_limit_of_count_age_or_size_expire_and_a_removed_change_cannot_be_undone() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for number in 0..3 {
        let name = format!("{number}.txt");
        bench.write(&name, &[b'x'; 100_000]);
        let new = modified(&name, file(&[b'x'; 100_000]), file(b"new\n"));
        ids.insert(0, bench.apply(changes(vec![new])).unwrap().id);
    }
    let rules = |count, max_age, max_bytes| KeepRules {
        count,
        max_age: Duration::from_secs(max_age),
        max_bytes,
    };
    let expired = |rules: &KeepRules| -> Vec<_> {
        let expired = bench.journal().expired(rules).unwrap();
        expired
            .into_iter()
            .map(|expired| (expired.id, expired.limit))
            .collect()
    };
    let (second, third) = (ids[1].clone(), ids[2].clone());
    assert_eq!(expired(&KeepRules::default()), []);
    let beyond_count = [
        (second, KeepLimit::Count),
        (third.clone(), KeepLimit::Count),
    ];
    assert_eq!(expired(&rules(1, 3600, 1 << 30)), beyond_count);
    let beyond_size = [(third.clone(), KeepLimit::Size)];
    assert_eq!(expired(&rules(9, 3600, 250_000)), beyond_size);
    let uid = rustix::process::geteuid().as_raw().to_string();
    let done = bench.site.join("applies").join(uid).join("done");
    fs::File::open(done.join(ids[2].as_str()))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(expired(&rules(9, 3600, 1 << 30)), [(third, KeepLimit::Age)]);
    bench.journal().remove(&ids[2]).unwrap();
    let gone = bench.undo(&ids[2], None).unwrap_err();
    assert!(matches!(gone, ApplyError::NotFound { .. }), "{gone}");
    // Control: a change that was not removed can be undone.
    bench.undo(&ids[0], None).unwrap();
    assert_eq!(fs::read(bench.path("2.txt")).unwrap(), [b'x'; 100_000]);
}

#[test]
fn recovery_removes_an_apply_directory_without_begin_json_once_it_is_older_than_a_minute() {
    let bench = Bench::new();
    let journal = bench.journal();
    let user = rustix::process::geteuid().as_raw();
    let open = bench.site.join(format!("applies/{user}/open"));
    let begun = open.join(format!("apply_{}", "0".repeat(32)));
    fs::create_dir(&begun).unwrap();
    fs::write(begun.join(".begin.json.new"), "{").unwrap();
    assert_eq!(journal.recover().unwrap().len(), 0);
    assert!(begun.exists(), "its process may be alive");
    let earlier = fs::FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(61));
    fs::File::open(&begun).unwrap().set_times(earlier).unwrap();
    let recovered = journal.recover().unwrap();
    assert!(recovered[0].error.is_none(), "{recovered:?}");
    assert!(!begun.exists());
}

#[test]
fn second_claim_of_the_apply_journal_is_refused_until_the_first_is_dropped() {
    let bench = Bench::new();
    let first = bench.journal().claim().unwrap();
    assert!(matches!(
        bench.journal().claim().unwrap_err(),
        ApplyError::Busy { .. }
    ));
    drop(first);
    let _second = bench.journal().claim().unwrap();
}

/// A change is on trial while its files are written and no check has yet said that the site works.
#[test]
fn change_is_undone_if_its_trial_was_interrupted_and_stays_if_its_trial_ended() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    bench.write("b.php", b"1\n");
    let change = || {
        changes(vec![
            modified("a.php", file(b"1\n"), file(b"2\n")),
            modified("b.php", file(b"1\n"), file(b"2\n")),
        ])
    };
    let before = tree(&bench.target);
    bench.apply_on_trial(change()).unwrap();
    let undone = bench.undo_trial().unwrap();
    assert_eq!(undone.report.restored, ["a.php", "b.php"]);
    assert_eq!(undone.paths, [bench.path("a.php"), bench.path("b.php")]);
    assert_eq!(tree(&bench.target), before);
    assert!(bench.undo_trial().is_none());
    // A file that was edited after the apply keeps its new content.
    bench.apply_on_trial(change()).unwrap();
    bench.write("b.php", b"mine\n");
    let undone = bench.undo_trial().unwrap();
    assert_eq!(undone.report.restored, ["a.php"]);
    assert_eq!(undone.report.conflicts.len(), 1);
    assert_eq!(fs::read(bench.path("b.php")).unwrap(), b"mine\n");
    bench.write("b.php", b"1\n");
    let kept = bench.apply_on_trial(change()).unwrap();
    bench.end_trial(&kept.id).unwrap();
    assert!(bench.undo_trial().is_none());
    assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"2\n");
}

#[test]
fn undo_of_an_interrupted_trial_does_nothing_if_the_change_was_refused_or_already_undone() {
    let bench = Bench::new();
    bench.write("a.php", b"other\n");
    let change = || changes(vec![modified("a.php", file(b"1\n"), file(b"2\n"))]);
    let refused = bench.apply_on_trial(change());
    assert!(matches!(refused, Err(ApplyError::Conflict { .. })));
    assert!(bench.undo_trial().is_none());
    bench.write("a.php", b"1\n");
    let applied = bench.apply_on_trial(change()).unwrap();
    bench.undo(&applied.id, None).unwrap();
    bench.write("a.php", b"mine\n");
    assert!(bench.undo_trial().is_none());
    assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"mine\n");
}

/// The exchange swaps the new contents in the staging directory `.wp-codebox-<id>` with the old
/// ones of the target.
#[test]
fn apply_that_fails_after_the_exchange_keeps_its_journal_and_is_finished_by_recovery() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    let before = tree(&bench.target);
    let id = trees::id("apply");
    // The staging directory gets this name before it is removed. A mount point cannot be removed.
    let obstacle = bench.path(&format!(".wp-codebox-{id}.old"));
    fs::create_dir(&obstacle).unwrap();
    if rustix::mount::mount_bind(&obstacle, &obstacle).is_err() {
        eprintln!("skipped: this user cannot mount");
        return;
    }
    let change = changes(vec![modified("a.php", file(b"1\n"), file(b"2\n"))]);
    match bench.apply_as(id.clone(), change) {
        Err(ApplyError::Stuck { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(bench.path("a.php")).unwrap(), b"2\n");
    // A recovery that fails keeps the journal as well.
    let staging = bench.path(&format!(".wp-codebox-{id}"));
    fs::rename(&staging, bench.path("aside")).unwrap();
    fs::write(&staging, b"no directory").unwrap();
    let recovered = bench.journal().recover().unwrap();
    assert!(recovered[0].error.is_some(), "{recovered:?}");
    fs::remove_file(&staging).unwrap();
    fs::rename(bench.path("aside"), &staging).unwrap();
    rustix::mount::unmount(&obstacle, rustix::mount::UnmountFlags::DETACH).unwrap();
    // The rest of a removal that was interrupted.
    fs::write(obstacle.join("x"), b"").unwrap();
    let recovered = bench.journal().recover().unwrap();
    assert_eq!(recovered.len(), 1);
    assert!(recovered[0].error.is_none(), "{recovered:?}");
    assert!(!obstacle.exists() && !staging.exists());
    bench.undo(&id, None).unwrap();
    assert_eq!(tree(&bench.target), before);
}

#[test]
fn undo_needs_only_the_directories_of_its_files_and_reports_the_files_of_a_missing_directory() {
    let bench = Bench::new();
    let (second, applied) = two_targets(&bench);
    fs::remove_dir_all(&second).unwrap();
    let one = ["/workspace/x/b.txt".to_owned()];
    let report = bench.undo(&applied.id, Some(&one)).unwrap();
    assert_eq!(
        (&report.restored[..], &report.conflicts[..]),
        (&one[..], &[][..])
    );
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.restored, ["/workspace/x/d/a.txt"]);
    let missing: Vec<_> = report.conflicts.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(missing, ["/workspace/y/b.txt", "/workspace/y/d/a.txt"]);
    assert!(!bench.path("d").exists());
    let undone = bench.journal().applied(&applied.id).unwrap().undone;
    assert_eq!(undone.len(), 2);
}

/// A change with the files before and after it.
type Kinds = fn(&Bench) -> MountChanges;

#[test]
fn entry_whose_kind_changes_is_applied_and_undone_and_nothing_else_stays() {
    let directory_to_link: Kinds = |bench| {
        bench.write("real/x.php", b"<?php\n");
        bench.write("d/sub/deep.php", b"<?php 1;\n");
        bench.write("d/x.php", b"<?php 2;\n");
        changes(vec![
            deleted("d/sub/deep.php", file(b"<?php 1;\n")),
            deleted("d/x.php", file(b"<?php 2;\n")),
            added("d", link("real")),
        ])
    };
    let link_to_directory: Kinds = |bench| {
        bench.write("real/x.php", b"<?php\n");
        symlink("real", bench.path("d")).unwrap();
        changes(vec![
            deleted("d", link("real")),
            added("d/sub/deep.php", file(b"<?php 1;\n")),
            added("d/x.php", file(b"<?php 2;\n")),
        ])
    };
    let file_to_directory: Kinds = |bench| {
        bench.write("d", b"file\n");
        changes(vec![
            deleted("d", file(b"file\n")),
            added("d/x.php", file(b"<?php\n")),
        ])
    };
    let directory_to_file: Kinds = |bench| {
        bench.write("d/sub/x.php", b"<?php\n");
        changes(vec![
            deleted("d/sub/x.php", file(b"<?php\n")),
            added("d", file(b"file\n")),
        ])
    };
    let file_to_empty_directory: Kinds = |bench| {
        bench.write("d", b"file\n");
        changes(vec![modified("d", file(b"file\n"), Node::Directory)])
    };
    let empty_directory_to_link: Kinds = |bench| {
        fs::create_dir(bench.path("d")).unwrap();
        changes(vec![modified("d", Node::Directory, link("nowhere"))])
    };
    let new_empty_directory: Kinds = |_| changes(vec![added("d", Node::Directory)]);
    let no_empty_directory: Kinds = |bench| {
        fs::create_dir(bench.path("d")).unwrap();
        changes(vec![deleted("d", Node::Directory)])
    };
    let cases = [
        new_empty_directory,
        no_empty_directory,
        directory_to_link,
        link_to_directory,
        file_to_directory,
        directory_to_file,
        file_to_empty_directory,
        empty_directory_to_link,
    ];
    for (number, prepare) in cases.into_iter().enumerate() {
        let bench = Bench::new();
        let change = prepare(&bench);
        let before = tree(&bench.target);
        let applied = bench.apply(change).unwrap();
        let after = tree(&bench.target);
        assert_ne!(after, before, "{number}");
        assert!(applied.files.iter().any(|name| name == "d"), "{number}");
        assert!(
            !after.keys().any(|name| name.contains(".wp-codebox")),
            "{number}: {after:?}"
        );
        let report = bench.undo(&applied.id, None).unwrap();
        assert_eq!(report.conflicts, [], "{number}");
        assert_eq!(tree(&bench.target), before, "{number}");
    }
}

#[test]
fn undo_of_a_new_empty_directory_is_a_conflict_as_long_as_it_has_files() {
    let bench = Bench::new();
    let applied = bench.apply(changes(vec![added("d", Node::Directory)]));
    let applied = applied.unwrap();
    bench.write("d/mine", b"mine\n");
    let report = bench.undo(&applied.id, None).unwrap();
    assert_eq!(report.restored, [""; 0]);
    assert_eq!(report.conflicts[0].reason, "not empty");
    assert!(bench.path("d/mine").exists());
    fs::remove_file(bench.path("d/mine")).unwrap();
    assert_eq!(bench.undo(&applied.id, None).unwrap().restored, ["d"]);
    assert!(!bench.path("d").exists());
}

#[test]
fn replaced_file_leaves_its_other_hard_link_with_the_old_contents_and_undo_restores_them() {
    let bench = Bench::new();
    bench.write("a.php", b"1\n");
    fs::hard_link(bench.path("a.php"), bench.path("other")).unwrap();
    let change = modified("a.php", file(b"1\n"), file(b"2\n"));
    let applied = bench.apply(changes(vec![change])).unwrap();
    let text = |name: &str| fs::read(bench.path(name)).unwrap();
    assert_eq!(
        (text("a.php"), text("other")),
        (b"2\n".to_vec(), b"1\n".to_vec())
    );
    bench.undo(&applied.id, None).unwrap();
    assert_eq!(text("a.php"), b"1\n");
}

/// Runs `work` in a thread with this user and group and without other groups.
fn as_user(user: u32, work: impl FnOnce() + Send) {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            work();
        });
    });
}

#[test]
fn file_of_a_foreign_group_is_replaced_if_all_users_have_the_rights_of_the_group_and_else_refused()
{
    use std::os::unix::fs::chown;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files to other users");
        return;
    }
    const USER: u32 = 4321;
    const GROUP: u32 = 4322;
    let bench = Bench::new();
    fs::create_dir(bench.path("shared")).unwrap();
    for (name, mode) in [
        ("all.php", 0o644),
        ("group.php", 0o640),
        ("foreign.php", 0o644),
    ] {
        bench.write(name, b"1\n");
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
        chown(bench.path(name), Some(USER), Some(GROUP)).unwrap();
    }
    chown(bench.path("foreign.php"), Some(0), Some(0)).unwrap();
    chown(bench.path("shared"), Some(USER), Some(GROUP)).unwrap();
    let set_group_id = fs::Permissions::from_mode(0o2775);
    fs::set_permissions(bench.path("shared"), set_group_id).unwrap();
    for directory in [&bench.target, &bench.site] {
        chown(directory, Some(USER), Some(USER)).unwrap();
    }
    let before = tree(&bench.target);
    let change = |name: &str| {
        changes(vec![
            modified("all.php", file(b"1\n"), file(b"2\n")),
            modified(name, file(b"1\n"), file(b"2\n")),
        ])
    };
    as_user(USER, || {
        for name in ["group.php", "foreign.php"] {
            match bench.apply(change(name)) {
                Err(ApplyError::Ownership { path, .. }) => assert_eq!(path, name),
                other => panic!("{other:?}"),
            }
            assert_eq!(tree(&bench.target), before);
        }
        let applied = bench.apply(changes(vec![
            modified("all.php", file(b"1\n"), file(b"2\n")),
            added("shared/new/x.php", file(b"x\n")),
        ]));
        let applied = applied.unwrap();
        assert_eq!(fs::read(bench.path("all.php")).unwrap(), b"2\n");
        assert!(bench.path("shared/new/x.php").exists());
        bench.undo(&applied.id, None).unwrap();
        assert_eq!(tree(&bench.target), before);
    });
    // Control: root replaces both, and they keep owner, group and mode.
    for name in ["group.php", "foreign.php"] {
        let owner = |path: &str| {
            let stat = fs::metadata(bench.path(path)).unwrap();
            (stat.uid(), stat.gid(), stat.mode())
        };
        let old = owner(name);
        let applied = bench.apply(change(name)).unwrap();
        assert_eq!(owner(name), old);
        bench.undo(&applied.id, None).unwrap();
    }
}

#[test]
fn new_entries_get_the_default_acl_and_the_set_group_id_bit_of_their_directory() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    fs::set_permissions(bench.path("d"), fs::Permissions::from_mode(0o2755)).unwrap();
    // An ACL with the entries user::rwx, user:4321:rwx, group::r-x, mask::rwx and other::r-x.
    let entries: [(u16, u16, u32); 5] = [
        (1, 7, u32::MAX),
        (2, 7, 4321),
        (4, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 5, u32::MAX),
    ];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(rights.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    let default = "system.posix_acl_default";
    if setxattr(bench.path("d"), default, &acl, XattrFlags::empty()).is_err() {
        eprintln!("skipped: this file system has no ACLs");
        return;
    }
    let has = |name: &str, attribute: &str| {
        let mut value = [0_u8; 64];
        getxattr(bench.path(name), attribute, &mut value).is_ok()
    };
    let change = changes(vec![added("d/new/x.php", file(b"x\n"))]);
    let applied = bench.apply(change).unwrap();
    let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("d/new"), mode("d/new/x.php")), (0o2755, 0o644));
    let access = "system.posix_acl_access";
    assert!(has("d/new", default) && has("d/new", access) && has("d/new/x.php", access));
    assert!(!has("d/new/x.php", default));
    bench.undo(&applied.id, None).unwrap();
    assert!(!bench.path("d/new").exists());
}

#[test]
fn change_whose_record_cannot_be_read_is_listed_with_the_cause_and_stays() {
    let bench = Bench::new();
    let apply = |name: &str| {
        let change = changes(vec![added(name, file(b"x\n"))]);
        bench.apply(change).unwrap().id
    };
    let (newer, damaged, missing, good) = (apply("a"), apply("b"), apply("c"), apply("d"));
    let user = rustix::process::geteuid().as_raw();
    let record = |id: &wp_codebox_apply::ApplyId| {
        let done = bench.site.join(format!("applies/{user}/done"));
        done.join(id.as_str()).join("journal.json")
    };
    let text = fs::read_to_string(record(&newer)).unwrap();
    let text = text.replace("apply-journal/v1", "apply-journal/v2");
    fs::write(record(&newer), text.replacen('{', "{\"later\": 1,", 1)).unwrap();
    fs::write(record(&damaged), "{\"schema\":").unwrap();
    fs::remove_file(record(&missing)).unwrap();
    let listed = bench.journal().list().unwrap();
    let [change] = &listed.changes[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(change.id, good);
    let reasons: Vec<String> = listed.unreadable.iter().map(ToString::to_string).collect();
    for (id, reason) in [
        (&newer, "use the newer wp-codebox"),
        (&damaged, "restore it from a backup"),
        (&missing, "restore it from a backup"),
    ] {
        let fits = |text: &&String| text.contains(id.as_str()) && text.contains(reason);
        assert_eq!(reasons.iter().filter(fits).count(), 1, "{id}: {reasons:?}");
        assert!(record(id).parent().unwrap().exists());
    }
    assert!(listed.complete().is_err());
    bench.undo(&good, None).unwrap();
}

use super::*;
use crate::capture::{Change, Node};
use rustix::fs::{self, FileType, FlockOperation, Mode};
use std::fs::{self as files, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use wp_codebox_contracts::CodedError;

struct Place {
    place: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["site", "base", "copy", "outside"] {
            files::create_dir(place.path().join(name)).unwrap();
        }
        let this = Self { place };
        files::create_dir_all(this.at("site/sub/deep")).unwrap();
        files::write(this.at("site/a.txt"), "a").unwrap();
        files::write(this.at("site/sub/b.txt"), "b").unwrap();
        files::write(this.at("site/sub/deep/c.txt"), "c").unwrap();
        files::write(this.at("outside/secret"), "secret").unwrap();
        this
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        files::read_to_string(self.at(name)).unwrap()
    }

    fn open(&self, name: &str) -> File {
        File::open(self.at(name)).unwrap()
    }

    /// Makes a shadow whose copy is the directory `copy`.
    fn shadow(&self) -> Shadow {
        let (site, base) = (self.open("site"), self.open("base"));
        let rules = ExcludeRules::default();
        let (shadow, _) = Shadow::make(site.as_fd(), base.as_fd(), rules).unwrap();
        shadow.copy_to(self.open("copy").as_fd()).unwrap();
        shadow
    }

    fn changes(&self, shadow: &Shadow) -> MountChanges {
        shadow.changes_in_copy(self.open("copy").as_fd()).unwrap()
    }
}

#[test]
fn changes_of_the_copy_reach_the_directory_only_by_a_merge() {
    let place = Place::new();
    files::set_permissions(place.at("site/a.txt"), files::Permissions::from_mode(0o640)).unwrap();
    let shadow = place.shadow();
    files::write(place.at("copy/a.txt"), "changed").unwrap();
    files::create_dir_all(place.at("copy/new/dir")).unwrap();
    files::write(place.at("copy/new/dir/d.txt"), "d").unwrap();
    files::remove_dir_all(place.at("copy/sub/deep")).unwrap();
    files::remove_file(place.at("copy/sub/b.txt")).unwrap();
    files::create_dir(place.at("copy/sub/b.txt")).unwrap();
    files::write(place.at("copy/sub/b.txt/inner"), "now a directory").unwrap();
    let changes = place.changes(&shadow);
    assert_eq!(place.read("site/a.txt"), "a");
    assert!(!place.at("site/new").exists());
    shadow.merge(&changes).unwrap();
    assert_eq!(place.read("site/a.txt"), "changed");
    assert_eq!(place.read("site/new/dir/d.txt"), "d");
    assert_eq!(place.read("site/sub/b.txt/inner"), "now a directory");
    assert!(!place.at("site/sub/deep").exists());
    let mode = files::metadata(place.at("site/a.txt"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o640);
    // The directory is no longer the base, so the same changes cannot be merged twice.
    let again = shadow.merge(&changes);
    assert!(
        matches!(again, Err(MergeError::Conflict { .. })),
        "{again:?}"
    );
}

#[test]
fn merge_omits_symlinks_out_of_the_copy_and_takes_over_a_symlink_inside_the_copy() {
    let place = Place::new();
    let shadow = place.shadow();
    symlink(place.at("outside/secret"), place.at("copy/absolute")).unwrap();
    symlink("../outside", place.at("copy/relative")).unwrap();
    symlink("a.txt", place.at("copy/inside")).unwrap();
    let changes = place.changes(&shadow);
    assert_eq!(changes.omitted.len(), 2, "{changes:?}");
    shadow.merge(&changes).unwrap();
    assert!(files::symlink_metadata(place.at("site/absolute")).is_err());
    assert!(files::symlink_metadata(place.at("site/relative")).is_err());
    // Positive control: a link that stays inside is a change like any other.
    assert_eq!(place.read("site/inside"), "a");
}

#[test]
fn merge_fails_if_a_symlink_is_at_the_path_of_a_directory_to_be_created() {
    let place = Place::new();
    let shadow = place.shadow();
    files::create_dir(place.at("copy/late")).unwrap();
    files::write(place.at("copy/late/made"), "x").unwrap();
    let changes = place.changes(&shadow);
    // Another program puts a link where the merge creates a directory.
    symlink(place.at("outside"), place.at("site/late")).unwrap();
    assert!(shadow.merge(&changes).is_err());
    assert!(!place.at("outside/made").exists());
    files::remove_file(place.at("site/late")).unwrap();
    shadow.merge(&changes).unwrap();
    assert_eq!(place.read("site/late/made"), "x");
}

#[test]
fn merge_into_a_directory_that_changed_meanwhile_is_a_conflict_and_changes_nothing() {
    let place = Place::new();
    let shadow = place.shadow();
    for name in ["a.txt", "sub/b.txt"] {
        files::write(place.at("copy").join(name), "of the tool").unwrap();
    }
    let changes = place.changes(&shadow);
    files::write(place.at("site/sub/b.txt"), "of another program").unwrap();
    let refused = shadow.merge(&changes).unwrap_err();
    assert!(matches!(&refused, MergeError::Conflict { path, count: 1 } if path == "sub/b.txt"));
    assert_eq!(place.read("site/a.txt"), "a");
    files::write(place.at("site/sub/b.txt"), "b").unwrap();
    shadow.merge(&changes).unwrap();
    assert_eq!(place.read("site/sub/b.txt"), "of the tool");
}

#[test]
fn fifo_in_the_directory_is_refused_and_one_in_the_copy_is_left_out() {
    let place = Place::new();
    let shadow = place.shadow();
    let mode = Mode::from_raw_mode(0o600);
    fs::mknodat(fs::CWD, place.at("copy/fifo"), FileType::Fifo, mode, 0).unwrap();
    let changes = place.changes(&shadow);
    assert_eq!((changes.entries.len(), changes.omitted.len()), (0, 1));
    let other = Place::new();
    fs::mknodat(fs::CWD, other.at("site/fifo"), FileType::Fifo, mode, 0).unwrap();
    let (site, base) = (other.open("site"), other.open("base"));
    let refused = Shadow::make(site.as_fd(), base.as_fd(), ExcludeRules::default());
    assert!(matches!(refused, Err(TreeError::Special { .. })));
}

#[test]
fn merge_refuses_files_that_another_program_edited_and_keeps_its_edits_of_other_files() {
    let place = Place::new();
    let shadow = place.shadow();
    files::write(place.at("copy/a.txt"), "of the tool").unwrap();
    // Another program edits a file that the tool changes, and one that it does not change.
    files::write(place.at("site/a.txt"), "of another program").unwrap();
    files::write(place.at("site/sub/b.txt"), "edited").unwrap();
    let changes = place.changes(&shadow);
    assert_eq!(changes.entries.len(), 1, "{changes:?}");
    let refused = shadow.merge(&changes).unwrap_err();
    assert!(matches!(&refused, MergeError::Conflict { path, count: 1 } if path == "a.txt"));
    assert_eq!(place.read("site/a.txt"), "of another program");
    files::write(place.at("site/a.txt"), "a").unwrap();
    shadow.merge(&changes).unwrap();
    assert_eq!(place.read("site/a.txt"), "of the tool");
    assert_eq!(place.read("site/sub/b.txt"), "edited");
}

/// Merges a change of a.txt, a removal of sub/b.txt and a new file new.txt. Another program does
/// `edit` when the merge is about to write `path`, after it has compared all paths.
fn merge_with_edit(path: &str, edit: impl Fn(&Place)) -> (Place, Result<(), MergeError>) {
    let place = Place::new();
    let shadow = place.shadow();
    files::write(place.at("copy/a.txt"), "of the tool").unwrap();
    files::write(place.at("copy/new.txt"), "of the tool").unwrap();
    files::remove_file(place.at("copy/sub/b.txt")).unwrap();
    let changes = place.changes(&shadow);
    let mut before_write = |at: &[u8]| {
        if at == path.as_bytes() {
            edit(&place);
        }
    };
    let result = merge::merge(&shadow.original, &changes, &mut before_write);
    for directory in ["site", "site/sub"] {
        let left = place.at(directory).join(".wp-codebox-merge");
        assert!(files::symlink_metadata(left).is_err());
    }
    (place, result)
}

#[test]
fn path_changed_between_comparison_and_write_is_not_overwritten_and_fails_the_merge() {
    for path in ["a.txt", "new.txt", "sub/b.txt"] {
        let file = format!("site/{path}");
        let edit = |place: &Place| files::write(place.at(&file), "of another program").unwrap();
        let (place, result) = merge_with_edit(path, edit);
        let error = result.unwrap_err();
        assert!(
            matches!(&error, MergeError::Changed { path: at } if at == path),
            "{error}"
        );
        assert_eq!(error.code(), wp_codebox_contracts::ErrorCode::ApplyConflict);
        assert_eq!(place.read(&file), "of another program");
    }
    let unlink = |place: &Place| files::remove_file(place.at("site/a.txt")).unwrap();
    let (place, result) = merge_with_edit("a.txt", unlink);
    assert!(matches!(result, Err(MergeError::Changed { .. })));
    assert!(!place.at("site/a.txt").exists());
    // Positive control: an edit of a path that the merge does not change.
    let other = |place: &Place| files::write(place.at("site/sub/deep/c.txt"), "edited").unwrap();
    let (place, result) = merge_with_edit("a.txt", other);
    result.unwrap();
    assert_eq!(place.read("site/a.txt"), "of the tool");
    assert_eq!(place.read("site/sub/deep/c.txt"), "edited");
    assert!(!place.at("site/sub/b.txt").exists());
}

#[test]
fn merge_while_another_one_holds_the_lock_is_refused() {
    let place = Place::new();
    let shadow = place.shadow();
    files::write(place.at("copy/a.txt"), "of the tool").unwrap();
    let changes = place.changes(&shadow);
    let other = place.open("site");
    fs::flock(&other, FlockOperation::LockExclusive).unwrap();
    assert!(matches!(shadow.merge(&changes), Err(MergeError::Busy)));
    assert_eq!(place.read("site/a.txt"), "a");
    drop(other);
    shadow.merge(&changes).unwrap();
    assert_eq!(place.read("site/a.txt"), "of the tool");
}

#[test]
fn changes_in_an_overlay_layer_are_compared_with_the_base_and_not_with_the_edited_directory() {
    let place = Place::new();
    let shadow = place.shadow();
    files::create_dir_all(place.at("upper/sub")).unwrap();
    files::write(place.at("upper/sub/b.txt"), "of the tool").unwrap();
    files::write(place.at("site/sub/b.txt"), "of another program").unwrap();
    let changes = shadow
        .changes_in_layer(place.open("upper").as_fd())
        .unwrap();
    let before = changes.entries[0].change.before().cloned();
    assert!(matches!(before, Some(Node::File { bytes, .. }) if bytes == b"b"));
    assert!(
        matches!(changes.entries[0].change, Change::Modified { .. }),
        "{changes:?}"
    );
    assert!(matches!(
        shadow.merge(&changes),
        Err(MergeError::Conflict { .. })
    ));
}

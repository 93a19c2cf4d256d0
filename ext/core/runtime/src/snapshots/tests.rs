use super::document::DOCUMENT;
use super::*;
use rustix::fd::AsFd;
use serde_json::Map;
use std::os::unix::fs::symlink;
use wp_codebox_artifacts::{Durability, sha256};
use wp_codebox_contracts::{CodedError, ErrorCode, SnapshotTemplate};

struct Place {
    temp: tempfile::TempDir,
    shelf: SnapshotStore,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let upper = temp.path().join("upper");
        fs::create_dir_all(upper.join("database")).unwrap();
        fs::write(upper.join("database/.ht.sqlite"), "rows").unwrap();
        symlink("nowhere", upper.join("link")).unwrap();
        let shelf = SnapshotStore::at(temp.path().join("snapshots"));
        Self { temp, shelf }
    }

    fn keep(&self, name: &str) -> Result<SandboxSnapshot, SnapshotError> {
        let upper = open_dir(&self.temp.path().join("upper"));
        let source = LayerSource {
            name: "content".to_owned(),
            upper: upper.as_fd(),
            below: None,
        };
        self.shelf
            .keep(facts(name), &[source], Durability::Unsynced)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.temp.path().join("snapshots")).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn open_dir(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

fn run(number: u128) -> RunId {
    RunId::new(format!("run_{number:032x}")).unwrap()
}

fn facts(name: &str) -> SnapshotFacts {
    SnapshotFacts {
        name: name.to_owned(),
        actor: "test".to_owned(),
        run_id: run(1),
        site: SiteId::new("site").unwrap(),
        template: SnapshotTemplate {
            key: "k".to_owned(),
            wordpress_version: "7.1".to_owned(),
            php_version: "8.2".to_owned(),
        },
        mounts: Vec::new(),
        metadata: Map::new(),
    }
}

#[test]
fn created_snapshot_is_complete_and_found_by_name_or_id() {
    let place = Place::new();
    let one = place.keep("before").unwrap();
    let two = place.keep("after").unwrap();
    assert_eq!(one.total_bytes, 4);
    assert_eq!(place.names().len(), 2);
    let listed = place.shelf.list(SnapshotScope::Run(&run(1)));
    // The two snapshots may be created in the same millisecond; then their random ids decide the
    // order.
    let mut made = [one.clone(), two.clone()];
    made.sort_by_key(|snapshot| (snapshot.created_at.clone(), snapshot.id.clone()));
    assert_eq!(listed, made);
    assert!(place.shelf.list(SnapshotScope::Run(&run(2))).is_empty());
    for reference in [one.id.as_str(), &one.id[..20], &one.id[5..20], "before"] {
        assert_eq!(
            place.shelf.find(reference, SnapshotScope::Any).unwrap(),
            one.id
        );
    }
    for reference in ["", "snap_", "nothing", "../..", "snap_zz"] {
        let error = place.shelf.find(reference, SnapshotScope::Any).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SnapshotNotFound, "{reference}");
    }
    let open = place.shelf.open("after", SnapshotScope::Any).unwrap();
    let (path, _) = open.layer("content").unwrap();
    assert_eq!(
        fs::read_to_string(path.join("database/.ht.sqlite")).unwrap(),
        "rows"
    );
}

#[test]
fn snapshot_lookup_by_id_ignores_snapshot_names() {
    let place = Place::new();
    let one = place.keep("before").unwrap();
    let prefix = one.id[5..12].to_owned();
    assert_eq!(place.shelf.by_id(&prefix).unwrap(), one.id);
    // The name of the second snapshot is a part of the first snapshot's id.
    let other = place.keep(&prefix).unwrap();
    assert_eq!(place.shelf.by_id(&prefix).unwrap(), one.id);
    assert_eq!(
        place.shelf.find(&prefix, SnapshotScope::Any).unwrap(),
        other.id
    );
    let error = place.shelf.by_id("before").unwrap_err();
    assert_eq!(error.code(), ErrorCode::SnapshotNotFound);
}

#[test]
fn snapshot_being_removed_cannot_be_opened() {
    let place = Place::new();
    let kept = place.keep("a").unwrap();
    let removal = place.shelf.removal(&kept.id).unwrap();
    assert_eq!(removal.snapshot.as_ref(), Some(&kept));
    let error = place.shelf.open(&kept.id, SnapshotScope::Any).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SandboxInUse);
    // If a removal is dropped before it is finished, the snapshot remains.
    drop(removal);
    place.shelf.open(&kept.id, SnapshotScope::Any).unwrap();
    place.shelf.removal(&kept.id).unwrap().finish().unwrap();
    assert!(place.names().is_empty());
}

/// A process finds a snapshot, but another process removes the snapshot before the first process
/// locks it.
#[test]
fn lock_of_a_snapshot_that_was_removed_after_it_was_found_fails_with_not_found() {
    let place = Place::new();
    let made = place.keep("one").unwrap();
    let path = place.shelf.root.join(&made.id);
    assert!(lock(&path, FlockOperation::NonBlockingLockShared).is_ok());
    place.shelf.remove(&made.id).unwrap();
    let gone = lock(&path, FlockOperation::NonBlockingLockShared).unwrap_err();
    assert!(matches!(&gone, SnapshotError::NotFound { reference } if *reference == made.id));
}

#[test]
fn snapshot_in_use_cannot_be_removed() {
    let place = Place::new();
    let kept = place.keep("a").unwrap();
    let open = place.shelf.open(&kept.id, SnapshotScope::Any).unwrap();
    let error = place.shelf.remove(&kept.id).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SandboxInUse);
    // Several sandboxes may use a snapshot at the same time.
    place.shelf.open(&kept.id, SnapshotScope::Any).unwrap();
    drop(open);
    place.shelf.remove(&kept.id).unwrap();
    assert!(place.names().is_empty());
    let error = place.shelf.remove(&kept.id).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SnapshotNotFound);
}

#[test]
fn modified_snapshot_is_refused() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 7] = [
        ("a file and its line of the list", |at| {
            fs::write(at.join("content/database/.ht.sqlite"), "ROWS").unwrap();
            let list = fs::read_to_string(at.join("content.jsonl")).unwrap();
            let (old, new) = (sha256(b"rows").to_string(), sha256(b"ROWS").to_string());
            assert!(list.contains(&old));
            fs::write(at.join("content.jsonl"), list.replace(&old, &new)).unwrap();
        }),
        ("a file", |at| {
            fs::write(at.join("content/database/.ht.sqlite"), "ROWS").unwrap()
        }),
        ("a file more", |at| {
            fs::write(at.join("content/x"), "").unwrap()
        }),
        ("the list", |at| {
            let list = fs::read_to_string(at.join("content.jsonl")).unwrap();
            fs::write(at.join("content.jsonl"), list.lines().next().unwrap()).unwrap();
        }),
        ("no list", |at| {
            fs::remove_file(at.join("content.jsonl")).unwrap()
        }),
        ("the document", |at| {
            let text = fs::read_to_string(at.join(DOCUMENT)).unwrap();
            fs::write(at.join(DOCUMENT), text.replace("\"test\"", "\"root\"")).unwrap();
        }),
        ("another's document", |at| {
            let text = fs::read_to_string(at.join(DOCUMENT)).unwrap();
            let id = at.file_name().unwrap().to_str().unwrap();
            let other = format!("snap_{:032x}", 5);
            fs::write(at.join(DOCUMENT), text.replace(id, &other)).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let place = Place::new();
        let kept = place.keep("a").unwrap();
        place.shelf.open(&kept.id, SnapshotScope::Any).unwrap();
        harm(&place.temp.path().join("snapshots").join(&kept.id));
        let error = place.shelf.open(&kept.id, SnapshotScope::Any).unwrap_err();
        assert_eq!(error.code(), ErrorCode::SnapshotInvalid, "{what}");
    }
}

#[test]
fn failed_snapshot_creation_leaves_no_files() {
    let place = Place::new();
    let upper = open_dir(&place.temp.path().join("upper"));
    let source = |name: &str| LayerSource {
        name: name.to_owned(),
        upper: upper.as_fd(),
        below: None,
    };
    // Both layers have the same name, so creating the second one fails.
    let twice = [source("content"), source("content")];
    place
        .shelf
        .keep(facts("a"), &twice, Durability::Unsynced)
        .unwrap_err();
    assert!(place.names().is_empty());
    place.keep("a").unwrap();
    assert_eq!(place.names().len(), 1);
}

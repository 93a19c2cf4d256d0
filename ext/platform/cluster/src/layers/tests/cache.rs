//! The cache of a node.

use super::*;
use crate::bus::{BusError, ObjectName};
use crate::names::SubmitterName;
use crate::objects::Objects;
use crate::objects::tests::MemoryObjects;
use std::sync::atomic::{AtomicU32, Ordering};
use wp_codebox_contracts::CodedError;

fn submitter(name: &str) -> SubmitterName {
    SubmitterName::new(name).unwrap()
}

/// Stores a layer with one file and returns its digest.
fn stored(objects: &MemoryObjects, content: &str) -> Sha256Hex {
    let work = temporary();
    std::fs::write(work.path().join("f"), content).unwrap();
    let root = Dir::open(work.path()).unwrap();
    let temp = temporary();
    let store = LayerStore::new(temp.path());
    store
        .put_missing(objects, root.as_fd(), &PackRules::whole())
        .unwrap()
}

/// Objects that count their downloads.
#[derive(Default)]
struct Counted(MemoryObjects, AtomicU32);

impl Objects for Counted {
    fn has(&self, name: &ObjectName) -> Result<bool, BusError> {
        self.0.has(name)
    }
    fn put(&self, name: &ObjectName, content: &mut (dyn Read + Send)) -> Result<(), BusError> {
        self.0.put(name, content)
    }
    fn get(&self, name: &ObjectName, to: &mut (dyn Write + Send)) -> Result<(), BusError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.get(name, to)
    }
    fn list(&self) -> Result<Vec<(String, u64)>, BusError> {
        self.0.list()
    }
    fn remove(&self, name: &str) -> Result<(), BusError> {
        self.0.remove(name)
    }
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn layer_is_fetched_once_for_many_threads_and_again_after_its_removal() {
    let root = temporary();
    let objects = Counted::default();
    let digest = stored(&objects.0, "content");
    let cache = LayerCache::open(root.path()).unwrap();
    let team = submitter("team");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let layer = cache.get(&objects, &team, &digest).unwrap();
                assert_eq!(std::fs::read(layer.path().join("f")).unwrap(), b"content");
            });
        }
    });
    assert_eq!(objects.1.load(Ordering::SeqCst), 1);
    assert_eq!(cache.collect(0).unwrap().removed, 1);
    cache.get(&objects, &team, &digest).unwrap();
    assert_eq!(objects.1.load(Ordering::SeqCst), 2);
}

/// Waits until so many threads or processes wait for a lock on this file.
fn wait_for_waiters(file: &std::fs::File, count: usize) {
    let inode = format!(":{} ", file.metadata().unwrap().ino());
    let waiting = |locks: &str| {
        let rows = locks.lines();
        rows.filter(|row| row.contains("->") && row.contains(&inode))
            .count()
    };
    while waiting(&std::fs::read_to_string("/proc/locks").unwrap()) < count {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn calls_that_wait_for_the_exclusive_lock_of_a_missing_layer_fetch_it_once() {
    let root = temporary();
    let objects = Counted::default();
    let digest = stored(&objects.0, "content");
    let cache = LayerCache::open(root.path()).unwrap();
    let team = submitter("team");
    std::fs::create_dir(root.path().join("team")).unwrap();
    let lock = root.path().join("team").join(format!("{digest}.lock"));
    let held = std::fs::File::create(lock).unwrap();
    // Both threads look for the layer under a shared lock, then wait for the exclusive one.
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockShared).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| cache.get(&objects, &team, &digest).unwrap());
        }
        wait_for_waiters(&held, 2);
        assert_eq!(objects.1.load(Ordering::SeqCst), 0);
        rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
    });
    assert_eq!(objects.1.load(Ordering::SeqCst), 1);
}

#[test]
fn submitter_that_knows_only_the_digest_gets_no_layer_of_another_submitter() {
    let root = temporary();
    let (own, other) = (MemoryObjects::default(), MemoryObjects::default());
    let digest = stored(&own, "secret of one team");
    let cache = LayerCache::open(root.path()).unwrap();
    // Control: the submitter with the object gets it.
    cache.get(&own, &submitter("one"), &digest).unwrap();
    let error = cache.get(&other, &submitter("two"), &digest).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterMissing);
    assert!(!root.path().join("two").join(digest.as_str()).exists());
}

#[test]
fn damaged_object_leaves_no_layer_and_the_next_call_fetches_again() {
    let root = temporary();
    let objects = MemoryObjects::default();
    let digest = stored(&objects, "content");
    let name = format!("layer.{digest}");
    let good = objects.lock()[&name].clone();
    let cache = LayerCache::open(root.path()).unwrap();
    let team = submitter("team");
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    for bytes in [bad, good[..good.len() - 5].to_vec(), gzip(b"x"), Vec::new()] {
        objects.lock().insert(name.clone(), bytes);
        let error = cache.get(&objects, &team, &digest).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterUnreadable, "{error}");
        assert_eq!(names(&root.path().join("team")), [format!("{digest}.lock")]);
    }
    objects.lock().insert(name, good);
    cache.get(&objects, &team, &digest).unwrap();
}

#[test]
fn collection_removes_the_layers_used_least_recently_and_none_in_use() {
    let root = temporary();
    let objects = MemoryObjects::default();
    let cache = LayerCache::open(root.path()).unwrap();
    let team = submitter("team");
    let digests: Vec<_> = ["a", "bb", "ccc"].map(|text| stored(&objects, text)).into();
    for (age, digest) in digests.iter().enumerate() {
        drop(cache.get(&objects, &team, digest).unwrap());
        let lock = root.path().join("team").join(format!("{digest}.lock"));
        let time = std::time::SystemTime::UNIX_EPOCH
            + std::time::Duration::from_secs(1_000_000 + age as u64);
        std::fs::File::options()
            .write(true)
            .open(lock)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    // Enough room for all.
    let all = cache.collect(6).unwrap();
    assert_eq!((all.removed, all.bytes), (0, 6));
    // The first one was used last now; the second one is the oldest.
    drop(cache.get(&objects, &team, &digests[0]).unwrap());
    let one = cache.collect(5).unwrap();
    assert_eq!((one.removed, one.removed_bytes, one.bytes), (1, 2, 4));
    let is_there = |digest: &Sha256Hex| root.path().join("team").join(digest.as_str()).exists();
    let there: Vec<_> = digests.iter().map(is_there).collect();
    assert_eq!(there, [true, false, true]);
    let used = cache.get(&objects, &team, &digests[2]).unwrap();
    let rest = cache.collect(0).unwrap();
    assert_eq!((rest.removed, rest.in_use, rest.bytes), (1, 1, 3));
    assert!(used.path().join("f").exists());
    // The lock lives as long as any duplicate of its descriptor, such as a child's.
    let inherited = used.as_fd().try_clone_to_owned().unwrap();
    drop(used);
    assert_eq!(cache.collect(0).unwrap().in_use, 1);
    drop(inherited);
    assert_eq!(cache.collect(0).unwrap().removed, 1);
    assert!(names(&root.path().join("team")).is_empty());
}

#[test]
fn leftover_directories_of_a_dead_process_are_removed_by_collection_and_by_the_next_fetch() {
    let root = temporary();
    let objects = MemoryObjects::default();
    let digest = stored(&objects, "content");
    let cache = LayerCache::open(root.path()).unwrap();
    let team = root.path().join("team");
    let leave = || {
        std::fs::create_dir_all(team.join(format!(".unpacking-{digest}/d"))).unwrap();
        std::fs::create_dir_all(team.join(format!(".removing-{digest}/d"))).unwrap();
        std::fs::write(team.join(format!("{digest}.lock")), "").unwrap();
    };
    leave();
    assert_eq!(cache.collect(u64::MAX).unwrap(), CacheReport::default());
    assert!(names(&team).is_empty());
    leave();
    let layer = cache.get(&objects, &submitter("team"), &digest).unwrap();
    assert_eq!(names(layer.path()), ["f"]);
    drop(layer);
    assert_eq!(cache.collect(0).unwrap().removed, 1);
    assert!(names(&team).is_empty());
}

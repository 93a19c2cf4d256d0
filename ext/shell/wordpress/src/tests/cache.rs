//! Tests of the cache: order, default version, lock, leftovers of crashes, and other users.

use super::super::{core_document, list_document};
use super::*;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::sync::mpsc;

/// Returns a bench in which small test cores of these versions are installed.
fn bench_with(versions: &[&str]) -> Bench {
    let bench = Bench::new();
    for version in versions {
        bench
            .install_zip(&zip_of("", &core_files(version)))
            .unwrap();
    }
    bench
}

fn versions(bench: &Bench) -> Vec<String> {
    let cores = bench.cores.list().unwrap();
    cores.into_iter().map(|core| core.version).collect()
}

/// Returns the version of the directory that [`Cores::find`] returns.
fn found(bench: &Bench, version: Option<&str>) -> Option<String> {
    let path = bench.cores.find(version)?;
    assert!(path.join("wp-load.php").is_file());
    Some(path.file_name()?.to_str()?.to_owned())
}

#[test]
fn cores_are_listed_newest_first_and_entries_without_a_core_are_not_listed() {
    let bench = bench_with(&["6.9", "6.10", "7.0-RC1", "6.9.1"]);
    fs::create_dir(bench.root().join("8.0")).unwrap();
    fs::create_dir(bench.root().join("notes")).unwrap();
    fs::write(bench.root().join("9.0"), "").unwrap();
    symlink("6.9", bench.root().join("9.1")).unwrap();
    assert_eq!(versions(&bench), ["7.0-RC1", "6.10", "6.9.1", "6.9"]);
    assert_eq!(versions(&Bench::new()), [""; 0]);
}

#[test]
fn core_is_found_by_version_by_series_and_by_default() {
    let bench = bench_with(&["6.8", "6.9", "6.9.2", "6.9.10", "6.10.1"]);
    assert_eq!(found(&bench, None).as_deref(), Some("6.8"), "the first one");
    assert_eq!(found(&bench, Some("6.9")).as_deref(), Some("6.9"));
    assert_eq!(found(&bench, Some("6.9.2")).as_deref(), Some("6.9.2"));
    assert_eq!(found(&bench, Some("6.10")).as_deref(), Some("6.10.1"));
    for none in ["6.1", "6.9.1", "", ".", "..", "current", "../wordpress/6.9"] {
        assert_eq!(found(&bench, Some(none)), None, "{none}");
    }
    fs::remove_dir_all(bench.root().join("6.9")).unwrap();
    assert_eq!(found(&bench, Some("6.9")).as_deref(), Some("6.9.10"));
    assert_eq!(found(&Bench::new(), None), None);
}

#[test]
fn chosen_version_is_the_default_until_its_core_is_removed() {
    let bench = bench_with(&["6.8", "6.9", "7.0"]);
    let core = bench.cores.use_version("6.9").unwrap();
    assert!(core.current && core.version == "6.9");
    assert_eq!(found(&bench, None).as_deref(), Some("6.9"));
    let current = bench.root().join("current");
    assert_eq!(fs::read_to_string(&current).unwrap(), "6.9\n");
    assert_eq!(mode(&current), 0o644);
    let error = bench.cores.use_version("6.7").unwrap_err();
    assert_eq!(error.code, ErrorCode::WordpressUnavailable);
    assert!(error.hints[0].contains("install 6.7"), "{:?}", error.hints);
    assert_eq!(found(&bench, None).as_deref(), Some("6.9"));
    fs::remove_dir_all(bench.root().join("6.9")).unwrap();
    assert_eq!(found(&bench, None).as_deref(), Some("7.0"), "the newest");
    let marked = |cores: &[Core]| cores.iter().filter(|core| core.current).count();
    assert_eq!(marked(&bench.cores.list().unwrap()), 1);
    // If the default core was removed, the next installed core becomes the default.
    assert!(
        bench
            .install_zip(&zip_of("", &core_files("6.5")))
            .unwrap()
            .current
    );
    assert_eq!(found(&bench, None).as_deref(), Some("6.5"));
}

#[test]
fn default_version_file_with_invalid_content_is_ignored() {
    let bench = bench_with(&["6.8", "7.0"]);
    let current = bench.root().join("current");
    for text in ["", "..", "../../etc", "6.9", "\u{0}"] {
        fs::write(&current, text).unwrap();
        assert_eq!(found(&bench, None).as_deref(), Some("7.0"), "{text:?}");
    }
    fs::remove_file(&current).unwrap();
    symlink("/proc/self/environ", &current).unwrap();
    assert_eq!(found(&bench, None).as_deref(), Some("7.0"));
    bench.cores.use_version("6.8").unwrap();
    assert_eq!(found(&bench, None).as_deref(), Some("6.8"));
    assert!(fs::symlink_metadata(&current).unwrap().is_file());
}

#[test]
fn leftovers_of_a_crashed_install_are_removed_by_the_next_one() {
    let bench = bench_with(&["6.8"]);
    let left = bench.root().join(".new-Ab12/core/wp-includes");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("version.php"), "<?php").unwrap();
    fs::write(bench.root().join(".new-file"), "6.8").unwrap();
    symlink(bench.temp.path(), bench.root().join(".new-link")).unwrap();
    assert_eq!(versions(&bench), ["6.8"]);
    bench.install_zip(&zip_of("", &core_files("6.9"))).unwrap();
    assert_eq!(bench.names(), ["6.8", "6.9", "current"]);
    assert!(
        bench.path("given.zip").is_file(),
        "the link was not followed"
    );
}

#[test]
fn directory_with_the_name_of_a_version_but_without_a_core_is_not_replaced() {
    let bench = bench_with(&["6.8"]);
    fs::create_dir(bench.root().join("6.9")).unwrap();
    fs::write(bench.root().join("6.9/mine.txt"), "mine").unwrap();
    let zip = zip_of("", &core_files("6.9"));
    let error = bench.install_zip(&zip).unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfigInvalid);
    assert!(error.hints[0].contains("remove it"));
    assert_eq!(bench.names(), ["6.8", "6.9", "current"]);
    fs::remove_dir_all(bench.root().join("6.9")).unwrap();
    bench.install_zip(&zip).unwrap();
}

#[test]
fn second_install_waits_for_the_first_and_finds_its_core() {
    /// Progress that reports each note to another thread.
    struct Reporting(mpsc::Sender<String>);
    impl Progress for Reporting {
        fn begin(&self, _: Step, _: &str, _: Option<u64>) {}
        fn advance(&self, _: u64) {}
        fn finish(&self) {}
        fn note(&self, sentence: &str) {
            self.0.send(sentence.to_owned()).unwrap();
        }
    }
    let bench = bench_with(&["6.8"]);
    let files = core_files("6.9");
    let server = Server::start(server::release_routes("6.9", &files));
    let lock = bench.cores.lock(&Silent).unwrap();
    let (sender, notes) = mpsc::channel();
    let (cores, network) = (bench.cores.clone(), online(&server));
    let second = std::thread::spawn(move || {
        let source = version("6.9");
        cores.install(&source, network, &Reporting(sender))
    });
    assert!(notes.recv().unwrap().contains("waiting"));
    // The first install puts its core into the cache before it releases the lock.
    write_files(&bench.root().join("6.9"), &files);
    drop(lock);
    let core = second.join().unwrap().unwrap();
    assert_eq!(core.version, "6.9");
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn install_holds_the_lock_during_every_step() {
    /// Progress that tries to take the lock at each step.
    struct Intruding(PathBuf, RefCell<Vec<bool>>);
    impl Intruding {
        fn try_lock(&self) {
            use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
            let lock = open(&self.0, OFlags::RDWR, Mode::empty()).unwrap();
            let taken = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            self.1.borrow_mut().push(taken);
        }
    }
    impl Progress for Intruding {
        fn begin(&self, _: Step, _: &str, _: Option<u64>) {
            self.try_lock();
        }
        fn advance(&self, _: u64) {}
        fn finish(&self) {
            self.try_lock();
        }
        fn note(&self, _: &str) {}
    }
    let bench = bench_with(&["6.8"]);
    let intruding = Intruding(bench.root().join(".lock"), RefCell::default());
    let source = Source::Zip(bench.path("other.zip"));
    fs::write(bench.path("other.zip"), zip_of("", &core_files("6.9"))).unwrap();
    bench
        .install_showing(&source, Network::Offline, &intruding)
        .unwrap();
    intruding.try_lock();
    assert_eq!(intruding.1.into_inner(), [false, false, true]);
}

#[test]
fn cache_that_another_user_can_change_is_refused() {
    let bench = bench_with(&["6.9"]);
    let set = |mode: u32| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(bench.root(), permissions).unwrap();
    };
    let zip = zip_of("", &core_files("7.0"));
    for mode in [0o777, 0o775] {
        set(mode);
        assert_eq!(
            bench.cores.list().unwrap_err().code,
            ErrorCode::ConfigInvalid
        );
        assert_eq!(bench.cores.find(None), None);
        let error = bench.install_zip(&zip).unwrap_err();
        assert_eq!(error.code, ErrorCode::ConfigInvalid);
    }
    set(0o755);
    assert_eq!(versions(&bench), ["6.9"]);
    // The cache must not be a symbolic link: another user could control its target.
    let moved = bench.path("moved");
    fs::rename(bench.root(), &moved).unwrap();
    symlink(&moved, bench.root()).unwrap();
    assert_eq!(
        bench.cores.list().unwrap_err().code,
        ErrorCode::ConfigInvalid
    );
    assert_eq!(bench.cores.find(None), None);
    fs::remove_file(bench.root()).unwrap();
    fs::write(bench.root(), "").unwrap();
    let error = bench.cores.list().unwrap_err();
    assert_eq!(error.code, ErrorCode::ConfigInvalid);
    assert!(
        error.message.contains("not a directory"),
        "{}",
        error.message
    );
}

#[test]
fn core_with_an_invalid_or_missing_record_file_is_still_found() {
    let bench = bench_with(&["6.9"]);
    let record = bench.root().join("6.9/.wp-codebox-core.json");
    assert_ne!(bench.cores.list().unwrap()[0].source, "unknown");
    fs::write(&record, r#"{"source": "x", "installedAt": "y", "z": 1}"#).unwrap();
    assert_eq!(bench.cores.list().unwrap()[0].source, "unknown");
    fs::remove_file(&record).unwrap();
    assert_eq!(found(&bench, None).as_deref(), Some("6.9"));
}

/// Checks that a document has the members that its schema describes and no others.
fn has_members_of(document: &Value, schema: &Value) {
    match document {
        Value::Object(members) => {
            let properties = schema["properties"].as_object().unwrap();
            assert!(members.keys().eq(properties.keys()), "{document} {schema}");
            for (name, member) in members {
                has_members_of(member, &properties[name]);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| has_members_of(item, &schema["items"])),
        _ => {
            let listed = schema["enum"].as_array();
            assert!(listed.is_none_or(|values| values.contains(document)));
        }
    }
}

#[test]
fn json_documents_have_exactly_the_members_of_their_schemas() {
    let bench = bench_with(&["6.8.1", "6.9"]);
    let cores = bench.cores.list().unwrap();
    let schema =
        |name| -> Value { serde_json::from_str(wp_codebox_schemas::text(name).unwrap()).unwrap() };
    let core = schema("wordpress-core");
    let list = schema("wordpress-core-list");
    has_members_of(&core_document(&cores[0]), &core);
    has_members_of(&list_document(&cores), &list);
    has_members_of(&list_document(&[]), &list);
    assert_eq!(list_document(&cores)["total"], 2);
}

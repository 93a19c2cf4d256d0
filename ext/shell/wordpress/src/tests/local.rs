//! Tests of installs from directories and zips of this host.

use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::os::unix::fs::symlink;

/// Writes a core and, beside it, files of a site that do not belong to the core.
fn write_site(directory: &Path) {
    let mut files = core_files("6.9");
    for other in [
        "wp-config.php",
        ".htaccess",
        "dump.sql",
        "wp-content/uploads/2025/a.jpg",
        "wp-content/plugins/shop/shop.php",
        "wp-content/themes/shop/style.css",
        "wp-content/themes/twentytwentyfive-child/style.css",
        "wp-content/mu-plugins/a.php",
        "wp-content/db.php",
    ] {
        files.insert(other.to_owned(), b"private".to_vec());
    }
    write_files(directory, &files);
}

/// Runs a closure in a thread for which file permissions apply even if the user is root: without
/// the capabilities that override them.
fn without_override<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    let limited = || {
        let now = capabilities(None).unwrap();
        let ignored = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        let effective = now.effective.difference(ignored);
        set_capabilities(None, CapabilitySets { effective, ..now }).unwrap();
        run()
    };
    std::thread::scope(|scope| scope.spawn(limited).join().unwrap())
}

#[test]
fn only_core_and_default_themes_of_a_site_are_taken_from_a_directory_and_a_zip() {
    let directory = Bench::new();
    write_site(&directory.path("site"));
    let zip = Bench::new();
    let mut all = core_files("6.9");
    all.insert("wp-config.php".to_owned(), b"private".to_vec());
    all.insert(
        "wp-content/plugins/shop/a.php".to_owned(),
        b"private".to_vec(),
    );
    for core in [
        directory.install_directory("site").unwrap(),
        zip.install_zip(&zip_of("", &all)).unwrap(),
    ] {
        let mut found = Vec::new();
        let mut queue = vec![core.path.clone()];
        while let Some(next) = queue.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => queue.push(path),
                    false => found.push(path.strip_prefix(&core.path).unwrap().to_owned()),
                }
            }
        }
        found.sort();
        let mut expected: Vec<PathBuf> = core_files("6.9").keys().map(PathBuf::from).collect();
        expected.push(".wp-codebox-core.json".into());
        expected.sort();
        assert_eq!(found, expected);
        assert!(core.path.join("wp-content/plugins").is_dir());
        assert!(core.path.join("wp-content/themes").is_dir());
    }
    let source = directory.cores.list().unwrap().remove(0).source;
    assert_eq!(source, directory.path("site").display().to_string());
}

#[test]
fn files_in_the_cache_have_standard_modes_whatever_the_source_has() {
    let bench = Bench::new();
    write_site(&bench.path("site"));
    let set = |name: &str, mode: u32| {
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("site/wp-load.php", 0o4755);
    set("site/wp-settings.php", 0o400);
    set("site/wp-includes", 0o700);
    let core = bench.install_directory("site").unwrap();
    assert_eq!(mode(&core.path.join("wp-load.php")), 0o644);
    assert_eq!(mode(&core.path.join("wp-settings.php")), 0o644);
    assert_eq!(mode(&core.path.join("wp-includes")), 0o755);
    assert_eq!(mode(&core.path.join(".wp-codebox-core.json")), 0o644);
    assert_eq!(mode(&core.path), 0o755);
}

#[test]
fn link_in_the_core_of_a_directory_is_refused_wherever_it_leads() {
    type Place<'p> = (&'p str, &'p str);
    let install = |(at, to): Place<'_>| {
        let bench = Bench::new();
        write_site(&bench.path("site"));
        let place = bench.path("site").join(at);
        let _ = fs::remove_dir_all(&place).or_else(|_| fs::remove_file(&place));
        symlink(to, place).unwrap();
        let result = bench.install_directory("site");
        (bench, result)
    };
    for place in [
        ("wp-includes/x.php", "/etc/passwd"),
        ("wp-includes/x.php", "version.php"),
        ("wp-includes/js", "/etc"),
        ("wp-load.php", "wp-settings.php"),
        ("wp-admin", "../other"),
        ("wp-content", "../content"),
        ("wp-content/themes/twentytwentyfive", "/srv/theme"),
    ] {
        let (bench, result) = install(place);
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(
            error.message.contains("symbolic link"),
            "{place:?}: {}",
            error.message
        );
    }
    // Links outside of the core do not matter.
    for place in [
        ("wp-content/plugins/linked", "/srv/plugin"),
        ("wp-content/uploads/x", "/etc"),
        ("wp-config.php", "/etc/passwd"),
    ] {
        let (bench, result) = install(place);
        let core = result.unwrap();
        assert!(!core.path.join(place.0).exists());
        drop(bench);
    }
}

#[test]
fn core_is_installed_from_a_directory_given_by_a_symbolic_link() {
    let bench = Bench::new();
    write_site(&bench.path("releases/1"));
    symlink("releases/1", bench.path("current")).unwrap();
    assert_eq!(bench.install_directory("current").unwrap().version, "6.9");
}

#[test]
fn fifo_or_socket_is_refused_among_core_files_and_ignored_among_uploads() {
    for kind in [FileType::Fifo, FileType::Socket] {
        let bench = Bench::new();
        write_site(&bench.path("site"));
        let node = |name: &str| {
            let path = bench.path("site").join(name);
            mknodat(CWD, &path, kind, Mode::from_raw_mode(0o644), 0).unwrap();
        };
        node("wp-content/uploads/node");
        bench.install_directory("site").unwrap();
        fs::remove_dir_all(bench.root()).unwrap();
        node("wp-includes/node.php");
        let result = bench.install_directory("site");
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(
            error.message.contains("wp-includes/node.php"),
            "{}",
            error.message
        );
    }
}

#[test]
fn install_fails_and_names_the_file_or_directory_that_cannot_be_read() {
    for name in ["wp-includes/js/a.js", "wp-includes/js", "wp-load.php"] {
        let bench = Bench::new();
        write_site(&bench.path("site"));
        let path = bench.path("site").join(name);
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let result = without_override(|| bench.install_directory("site"));
        let error = bench.refused(result, ErrorCode::InputInvalid);
        assert!(error.message.contains(name), "{}", error.message);
        fs::set_permissions(&path, before).unwrap();
        without_override(|| bench.install_directory("site")).unwrap();
    }
}

#[test]
fn cache_that_cannot_be_written_is_an_error_with_a_hint() {
    let bench = Bench::new();
    write_site(&bench.path("site"));
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let parent = bench.temp.path().to_owned();
    set(&parent, 0o555);
    let result = without_override(|| bench.install_directory("site"));
    let error = bench.refused(result, ErrorCode::WordpressUnavailable);
    assert!(
        error.hints[0].contains("XDG_CACHE_HOME"),
        "{:?}",
        error.hints
    );
    set(&parent, 0o755);
    fs::create_dir_all(bench.root()).unwrap();
    set(&bench.root(), 0o555);
    let result = without_override(|| bench.install_directory("site"));
    bench.refused(result, ErrorCode::WordpressUnavailable);
    set(&bench.root(), 0o755);
    without_override(|| bench.install_directory("site")).unwrap();
}

#[test]
fn installed_version_is_not_replaced_and_a_note_says_so() {
    let bench = Bench::new();
    write_site(&bench.path("site"));
    let first = bench.install_directory("site").unwrap();
    fs::write(bench.path("site/wp-load.php"), "<?php // changed").unwrap();
    let shown = Recorded::default();
    let source = Source::Directory(bench.path("site"));
    let second = bench
        .install_showing(&source, Network::Offline, &shown)
        .unwrap();
    assert_eq!(first, second);
    let text = fs::read_to_string(first.path.join("wp-load.php")).unwrap();
    assert_eq!(text, "<?php // load");
    let lines = shown.lines.into_inner();
    assert!(
        lines.last().unwrap().contains("installed already"),
        "{lines:?}"
    );
    assert_eq!(bench.names(), ["6.9", "current"]);
}

#[test]
fn directory_without_wordpress_is_refused_and_the_error_names_a_missing_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("empty")).unwrap();
    let result = bench.install_directory("empty");
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(
        error.message.contains("wp-load.php is missing"),
        "{}",
        error.message
    );
}

#[test]
fn file_name_that_is_not_utf8_is_refused_in_the_core_and_ignored_elsewhere() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    write_site(&bench.path("site"));
    let odd = OsStr::from_bytes(b"odd\xff");
    fs::write(bench.path("site").join(odd), "").unwrap();
    bench.install_directory("site").unwrap();
    fs::remove_dir_all(bench.root()).unwrap();
    fs::write(bench.path("site/wp-admin").join(odd), "").unwrap();
    let result = bench.install_directory("site");
    bench.refused(result, ErrorCode::WordpressInvalid);
}

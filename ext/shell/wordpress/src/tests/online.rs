//! Tests of installs from a server: releases, the npm package, and wrong answers of a server.

use super::server::{Reply, Routes, checksum_route, latest_route, release_routes};
use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::Sha512;

/// Returns the path of the route that ends with `end`.
fn route(routes: &Routes, end: &str) -> String {
    routes
        .keys()
        .find(|path| path.ends_with(end))
        .unwrap()
        .clone()
}

/// Returns the routes for release 6.9, in which the route that ends with `end` has another reply.
fn with(end: &str, reply: Reply) -> Routes {
    let mut routes = release_routes("6.9", &core_files("6.9"));
    let path = route(&routes, end);
    routes.insert(path, reply);
    routes
}

/// Returns a gzipped tar archive with the layout of the npm package: a core and another file.
fn package_archive(files: &Files) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |path: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, path, bytes).unwrap();
    };
    add("package/package.json".to_owned(), b"{}");
    for (path, bytes) in files {
        add(format!("{}{path}", PACKAGE.top), bytes);
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// Path of the package on a registry.
const PACKAGE_ROUTE: &str = "/wp-studio/-/wp-studio-1.22.0.tgz";

/// Returns a bench in which the pinned digest of the package is that of this archive.
fn bench_with_package(archive: &[u8]) -> Bench {
    let mut bench = Bench::new();
    let sha512 = STANDARD.encode(Sha512::digest(archive));
    bench.package.sha512 = Box::leak(sha512.into_boxed_str());
    bench
}

#[test]
fn latest_release_is_downloaded_compared_with_published_checksums_and_becomes_the_default() {
    let bench = Bench::new();
    let files = core_files("6.9");
    let server = Server::start(release_routes("6.9", &files));
    let shown = Recorded::default();
    let core = bench
        .install_showing(&Source::Latest, online(&server), &shown)
        .unwrap();
    assert_eq!(core.version, "6.9");
    assert_eq!(core.path, bench.root().join("6.9"));
    assert_eq!(core.source, server.origin());
    assert!(core.installed_at.ends_with('Z'), "{}", core.installed_at);
    assert!(core.current);
    for (path, bytes) in &files {
        let file = core.path.join(path);
        assert_eq!(&fs::read(&file).unwrap(), bytes, "{path}");
        assert_eq!(mode(&file), 0o644, "{path}");
        assert_eq!(mode(file.parent().unwrap()), 0o755, "{path}");
    }
    assert!(core.path.join("wp-content/plugins").is_dir());
    assert_eq!(mode(&bench.root()), 0o755);
    assert_eq!(bench.names(), ["6.9", "current"]);
    let lines = shown.lines.into_inner();
    assert_eq!(lines, ["Download WordPress 6.9", "Unpack WordPress 6.9"]);
    let archive = "/release/wordpress-6.9.zip".to_owned();
    let asked = [
        latest_route(),
        format!("{archive}.sha1"),
        checksum_route("6.9"),
        archive,
    ];
    assert_eq!(server.requests(), asked);
    // A second install asks the server for the latest version, but downloads nothing.
    let again = bench.install(&Source::Latest, online(&server)).unwrap();
    assert_eq!(again, core);
    assert_eq!(server.requests(), [latest_route()]);
    assert_eq!(
        bench.install(&version("6.9"), online(&server)).unwrap(),
        core
    );
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn second_installed_version_does_not_become_the_default() {
    let bench = Bench::new();
    let mut routes = release_routes("6.8", &core_files("6.8"));
    routes.extend(release_routes("6.9", &core_files("6.9")));
    let server = Server::start(routes);
    assert!(
        bench
            .install(&version("6.8"), online(&server))
            .unwrap()
            .current
    );
    assert!(
        !bench
            .install(&version("6.9"), online(&server))
            .unwrap()
            .current
    );
    assert_eq!(bench.names(), ["6.8", "6.9", "current"]);
}

#[test]
fn archive_that_does_not_match_its_published_sha1_is_refused() {
    for sha1 in ["0".repeat(40), "no digest".to_owned(), String::new()] {
        let bench = Bench::new();
        let server = Server::start(with(".sha1", Reply::Body(sha1.clone().into_bytes())));
        let result = bench.install(&version("6.9"), online(&server));
        let code = match sha1.len() {
            40 => ErrorCode::WordpressInvalid,
            _ => ErrorCode::WordpressUnavailable,
        };
        bench.refused(result, code);
    }
}

#[test]
fn release_with_missing_changed_or_additional_files_is_refused() {
    let files = core_files("6.9");
    let differing = |change: &dyn Fn(&mut Files)| {
        let mut changed = files.clone();
        change(&mut changed);
        Reply::Body(checksums(&changed))
    };
    let refused = |published: Reply, difference: &str| {
        let bench = Bench::new();
        let server = Server::start(with("en_US", published));
        let result = bench.install(&version("6.9"), online(&server));
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(error.message.contains(difference), "{}", error.message);
    };
    let added = |files: &mut Files| {
        files.insert("wp-admin/b.php".to_owned(), b"x".to_vec());
    };
    refused(differing(&added), "\"wp-admin/b.php\" is missing");
    let removed = |files: &mut Files| {
        files.remove("wp-includes/js/a.js");
    };
    refused(differing(&removed), "\"wp-includes/js/a.js\" is not part");
    let changed = |files: &mut Files| {
        files.insert("wp-load.php".to_owned(), b"other".to_vec());
    };
    refused(
        differing(&changed),
        "\"wp-load.php\" has different contents",
    );
    // Files of themes are not compared, because themes have releases of their own.
    let theme = |files: &mut Files| {
        files.remove("wp-content/themes/twentytwentyfive/style.css");
    };
    let bench = Bench::new();
    let server = Server::start(with("en_US", differing(&theme)));
    bench.install(&version("6.9"), online(&server)).unwrap();
}

#[test]
fn malformed_version_or_checksum_answer_of_the_server_is_an_error() {
    for (end, body) in [
        ("en_US", r#"{"checksums": false}"#),
        ("en_US", r#"{"checksums": {}}"#),
        ("en_US", r#"{"checksums": {"wp-load.php": "x"}}"#),
        ("en_US", "<html>sign in</html>"),
        ("1.7/", "<html>sign in</html>"),
        ("1.7/", r#"{"offers": []}"#),
        (
            "1.7/",
            r#"{"offers": [{"response": "development", "version": "7.0"}]}"#,
        ),
        (
            "1.7/",
            r#"{"offers": [{"response": "upgrade", "version": "../7.0"}]}"#,
        ),
    ] {
        let bench = Bench::new();
        let server = Server::start(with(end, Reply::Body(body.into())));
        let result = bench.install(&Source::Latest, online(&server));
        bench.refused(result, ErrorCode::WordpressUnavailable);
    }
}

#[test]
fn archive_that_contains_a_version_other_than_the_requested_one_is_refused() {
    let bench = Bench::new();
    let mut routes = release_routes("6.9", &core_files("6.8"));
    let server = Server::start(routes.clone());
    let result = bench.install(&version("6.9"), online(&server));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("6.8"), "{}", error.message);
    routes.extend(release_routes("6.9", &core_files("6.9")));
    let server = Server::start(routes);
    bench.install(&version("6.9"), online(&server)).unwrap();
}

#[test]
fn errors_of_an_unknown_version_and_of_a_failing_server_have_different_codes() {
    let bench = Bench::new();
    let server = Server::start(release_routes("6.9", &core_files("6.9")));
    let result = bench.install(&version("6.99"), online(&server));
    let error = bench.refused(result, ErrorCode::InputInvalid);
    assert!(error.message.contains("6.99"), "{}", error.message);
    let server = Server::start(with("6.9.zip", Reply::Status(503)));
    let result = bench.install(&version("6.9"), online(&server));
    bench.refused(result, ErrorCode::WordpressUnavailable);
}

#[test]
fn redirect_without_encryption_is_followed_to_the_same_origin_and_refused_to_another_origin() {
    let moved = |to: String| {
        let mut routes = with("6.9.zip", Reply::Redirect(to));
        let archive = zip_of("wordpress/", &core_files("6.9"));
        routes.insert("/moved".to_owned(), Reply::Body(archive));
        Server::start(routes)
    };
    let bench = Bench::new();
    bench
        .install(&version("6.9"), online(&moved("/moved".to_owned())))
        .unwrap();
    let other = moved("/moved".to_owned());
    let bench = Bench::new();
    let server = moved(format!("{}/moved", other.origin()));
    let result = bench.install(&version("6.9"), online(&server));
    let error = bench.refused(result, ErrorCode::WordpressUnavailable);
    assert!(error.message.contains("encryption"), "{}", error.message);
    assert_eq!(other.requests(), [""; 0]);
    // A redirect loop ends with an error.
    let server = moved("/release/wordpress-6.9.zip".to_owned());
    let result = bench.install(&version("6.9"), online(&server));
    bench.refused(result, ErrorCode::WordpressUnavailable);
}

#[test]
fn archive_larger_than_the_limit_is_refused_with_and_without_a_stated_size() {
    let archive = zip_of("wordpress/", &core_files("6.9"));
    let size = archive.len() as u64;
    let limited = |archive_limit: u64, reply: fn(Vec<u8>) -> Reply| {
        let mut bench = Bench::new();
        bench.limits.archive = archive_limit;
        let server = Server::start(with("6.9.zip", reply(archive.clone())));
        let result = bench.install(&version("6.9"), online(&server));
        (bench, result)
    };
    for reply in [Reply::Body, Reply::Unmeasured] {
        limited(size, reply).1.unwrap();
        let (bench, result) = limited(size - 1, reply);
        bench.refused(result, ErrorCode::WordpressInvalid);
    }
    // A stated size above the limit is refused at once: the server sends no body here.
    let (bench, result) = limited(size, |archive| Reply::Stall(archive.len() as u64 + 1));
    bench.refused(result, ErrorCode::WordpressInvalid);
}

#[test]
fn transfer_that_ends_early_or_stalls_is_an_error() {
    let archive = zip_of("wordpress/", &core_files("6.9"));
    for reply in [Reply::Cut(archive), Reply::Stall(1000)] {
        let mut bench = Bench::new();
        bench.pace.stall = Duration::from_millis(200);
        let server = Server::start(with("6.9.zip", reply));
        let result = bench.install(&version("6.9"), online(&server));
        let error = bench.refused(result, ErrorCode::WordpressUnavailable);
        assert!(
            error.message.contains("did not complete"),
            "{}",
            error.message
        );
    }
}

#[test]
fn npm_package_is_verified_and_only_its_core_is_taken() {
    let mut files = core_files(PACKAGE.wordpress);
    files.insert("wp-content/plugins/akismet/a.php".to_owned(), Vec::new());
    let archive = package_archive(&files);
    let server =
        |body: Vec<u8>| Server::start([(PACKAGE_ROUTE.to_owned(), Reply::Body(body))].into());
    let bench = bench_with_package(&archive);
    let core = bench
        .install(&Source::Npm, online(&server(archive.clone())))
        .unwrap();
    assert_eq!(core.version, PACKAGE.wordpress);
    assert_eq!(core.source, PACKAGE.title);
    assert!(
        core.path
            .join("wp-content/themes/twentytwentyfive/style.css")
            .is_file()
    );
    assert!(!core.path.join("wp-content/plugins/akismet").exists());
    assert!(!core.path.join("package.json").exists());
    assert_eq!(mode(&core.path.join("wp-load.php")), 0o644);
    // The real pinned digest does not match this archive.
    let bench = Bench::new();
    let result = bench.install(&Source::Npm, online(&server(archive)));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("SHA-512"), "{}", error.message);
}

#[test]
fn npm_package_replaces_latest_only_if_wordpress_org_cannot_be_reached() {
    let archive = package_archive(&core_files(PACKAGE.wordpress));
    let routes = || Routes::from([(PACKAGE_ROUTE.to_owned(), Reply::Body(archive.clone()))]);
    let server = Server::start(routes());
    let (closed, _bound) = closed_origin();
    let origins = |api: &str, downloads: &str| {
        Network::Online(Origins {
            api: api.to_owned(),
            downloads: downloads.to_owned(),
            registry: server.origin(),
            transport: Transport::Loopback,
        })
    };
    let bench = bench_with_package(&archive);
    let shown = Recorded::default();
    let core = bench
        .install_showing(&Source::Latest, origins(&closed, &closed), &shown)
        .unwrap();
    assert_eq!(core.source, PACKAGE.title);
    assert!(shown.lines.borrow()[0].contains("cannot be reached"));
    // Only the server with the archives cannot be reached.
    let bench = bench_with_package(&archive);
    let api = Server::start(release_routes("9.0", &core_files("9.0")));
    let core = bench
        .install(&Source::Latest, origins(&api.origin(), &closed))
        .unwrap();
    assert_eq!(core.version, PACKAGE.wordpress);
    server.requests();
    // The package does not replace a version that the user named. It does not replace the latest
    // version either if the server answers with an error.
    let bench = bench_with_package(&archive);
    let result = bench.install(&version("6.9"), origins(&closed, &closed));
    let error = bench.refused(result, ErrorCode::WordpressUnavailable);
    assert!(error.hints.iter().any(|hint| hint.contains("install npm")));
    let result = bench.install(&Source::Latest, origins(&server.origin(), &closed));
    bench.refused(result, ErrorCode::WordpressUnavailable);
    assert_eq!(server.requests(), [latest_route()]);
}

#[test]
fn installed_core_at_least_as_new_as_the_npm_package_is_used_if_wordpress_org_is_unreachable() {
    let server = Server::start(Routes::new());
    let (closed, _bound) = closed_origin();
    let unreachable = || {
        Network::Online(Origins {
            api: closed.clone(),
            downloads: closed.clone(),
            registry: server.origin(),
            transport: Transport::Loopback,
        })
    };
    let bench = Bench::new();
    bench.install_zip(&zip_of("", &core_files("7.2"))).unwrap();
    let core = bench.install(&Source::Latest, unreachable()).unwrap();
    assert_eq!(core.version, "7.2");
    assert_eq!(server.requests(), [""; 0]);
    // An older installed core is not used; the install asks the registry instead.
    let bench = Bench::new();
    bench.install_zip(&zip_of("", &core_files("6.8"))).unwrap();
    let error = bench.install(&Source::Latest, unreachable()).unwrap_err();
    assert_eq!(error.code, ErrorCode::WordpressUnavailable);
    assert_eq!(server.requests(), [PACKAGE_ROUTE]);
}

#[test]
fn offline_install_uses_an_installed_core_or_fails_with_a_hint() {
    let bench = Bench::new();
    for source in [Source::Latest, version("6.9"), Source::Npm] {
        let result = bench.install(&source, Network::Offline);
        let error = bench.refused(result, ErrorCode::WordpressUnavailable);
        assert!(error.hints[0].contains("wordpress install"));
    }
    assert!(!bench.path("cache").exists(), "nothing is created");
    bench
        .install_zip(&zip_of("", &core_files("6.8.1")))
        .unwrap();
    bench
        .install_zip(&zip_of("", &core_files("6.9.2")))
        .unwrap();
    let offline = |source: Source| bench.install(&source, Network::Offline);
    assert_eq!(offline(Source::Latest).unwrap().version, "6.9.2");
    assert_eq!(offline(version("6.8.1")).unwrap().version, "6.8.1");
    assert_eq!(offline(version("6.9")).unwrap().version, "6.9.2");
    assert!(offline(version("6.9.1")).is_err());
    assert!(offline(Source::Npm).is_err());
}

#[test]
fn release_with_a_file_outside_of_its_directory_is_refused() {
    let files = core_files("6.9");
    let mut outside: Files = files
        .iter()
        .map(|(path, bytes)| (format!("wordpress/{path}"), bytes.clone()))
        .collect();
    outside.insert("readme.php".to_owned(), Vec::new());
    let archive = zip_of("", &outside);
    let mut routes = with("6.9.zip", Reply::Body(archive.clone()));
    let sha1 = hex(&sha1::Sha1::digest(&archive));
    routes.insert(route(&routes, ".sha1"), Reply::Body(sha1.into_bytes()));
    let server = Server::start(routes);
    let bench = Bench::new();
    let result = bench.install(&version("6.9"), online(&server));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("readme.php"), "{}", error.message);
    // A zip of a user may have other files beside the core.
    bench.install_zip(&archive).unwrap();
    assert!(!bench.root().join("6.9/readme.php").exists());
}

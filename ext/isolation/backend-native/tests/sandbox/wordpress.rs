//! WordPress in a guest, and the template from which it starts.

use crate::fixture::*;
use std::fs;
use std::path::Path;
use std::time::Instant;
use wp_codebox_backend_native::{PhpLayout, TemplateError, TemplateRequest, ensure_template};
use wp_codebox_contracts::{CodedError, ErrorCode};

const RUN_PHP: &str = "/opt/codebox/guest/run-php.php";

fn wp_php(guest: &mut wp_codebox_backend_native::Guest, code: &str) -> ProgramOutput {
    let write = request(&["sh", "-c", "cat > /tmp/code.php"]);
    run_request(guest, &write, format!("<?php {code}").as_bytes()).ok();
    run(guest, &["php", RUN_PHP, "/tmp/code.php", "arg"])
}

#[test]
fn wordpress_loads_and_writes_to_the_guests_database() {
    let mut guest = guest();
    let result = wp_php(
        &mut guest,
        "echo get_option('home'), ' ', wp_get_theme()->get_stylesheet(), ' ', $argv[1], ' ', count_users()['total_users'];",
    );
    assert_eq!(result.ok(), "http://localhost twentytwentyfive arg 1");
    let result = wp_php(
        &mut guest,
        "echo wp_insert_post(['post_title'=>'T','post_status'=>'publish']) > 0 ? 'inserted' : 'no';",
    );
    assert_eq!(result.ok(), "inserted");
    assert_eq!(
        run(
            &mut guest,
            &[
                "wp",
                "post",
                "list",
                "--field=post_title",
                "--posts_per_page=1"
            ]
        )
        .ok(),
        "T\n"
    );
    assert_eq!(
        run(&mut guest, &["wp", "core", "version"]).ok().trim(),
        template().wordpress_version
    );
    let own = run(
        &mut guest,
        &["wp", "eval", "echo WP_CLI_ROOT, ' ', ABSPATH;"],
    )
    .ok();
    assert_eq!(own, "/run/codebox/wp-cli/vendor/wp-cli/wp-cli /wordpress/");
}

#[test]
fn wp_mail_without_receiver_and_http_to_outside_the_guest_fail_without_waiting() {
    let mut guest = guest();
    drop(guest.take_mail());
    // Waiting for an unreachable mail server or address would take minutes. The time is measured
    // inside PHP, because loading WordPress takes seconds on a busy machine.
    let result = wp_php(
        &mut guest,
        "$t = hrtime(true); var_dump(wp_mail('a@example.org','s','m')); echo wp_remote_get('http://192.0.2.1/')->get_error_code(); echo hrtime(true) - $t < 20e9 ? ' at once ' : ' late '; var_dump(DISABLE_WP_CRON);",
    );
    assert_eq!(
        result.ok(),
        "bool(false)\nhttp_request_not_executed at once bool(true)\n"
    );
    // Control: HTTP within the guest works, so only connections to the outside fail.
    let result = sh(
        &mut guest,
        "cd /tmp && echo in > f.txt && (php -S 127.0.0.1:8123 >/dev/null 2>&1 & echo $! > pid) && for i in $(seq 600); do curl -sf http://127.0.0.1:8123/f.txt >/dev/null && break; sleep 0.1; done",
    );
    assert_eq!(result.code(), 0);
    let result = wp_php(
        &mut guest,
        "echo wp_remote_retrieve_body(wp_remote_get('http://127.0.0.1:8123/f.txt', ['timeout' => 60]));",
    );
    assert_eq!(result.ok(), "in\n");
}

#[test]
fn template_and_guest_contain_no_secrets_of_the_parent_site() {
    let template = template();
    let core = Path::new(&template.core);
    let config = fs::read_to_string(core.join("wp-config.php")).unwrap();
    assert!(!config.contains("parent-secret") && !config.contains("@salt@"));
    let salts: std::collections::BTreeSet<_> = config
        .lines()
        .filter(|l| l.contains("_KEY'") || l.contains("_SALT'"))
        .map(|l| l.rsplit('\'').nth(1).unwrap())
        .collect();
    assert_eq!(salts.len(), 8, "eight different secrets");
    assert!(
        !Path::new(&template.content)
            .join("uploads/private.txt")
            .exists()
    );
    assert!(
        !Path::new(&template.content)
            .join("plugins/akismet")
            .exists()
    );
    let mut guest = guest();
    let result = sh(
        &mut guest,
        "grep -rl parent-secret /wordpress --include=wp-config.php; find / -name private.txt 2>/dev/null",
    );
    assert_eq!(result.out, "");
    assert!(
        fs::read_to_string(fixture().wordpress.join("wp-config.php"))
            .unwrap()
            .contains("parent-secret")
    );
}

#[test]
fn wordpress_core_is_read_only_and_wp_content_is_writable() {
    let mut guest = guest();
    assert_ne!(sh(&mut guest, "echo x >> /wordpress/wp-load.php").code(), 0);
    assert_ne!(sh(&mut guest, "echo x > /wordpress/new.php").code(), 0);
    assert_ne!(sh(&mut guest, "echo x > /opt/codebox/bin/wp").code(), 0);
    let unpacked = "/run/codebox/wp-cli/vendor/autoload.php";
    assert_ne!(sh(&mut guest, &format!("echo x >> {unpacked}")).code(), 0);
    sh(&mut guest, &format!("cat {unpacked}")).ok();
    assert_eq!(
        sh(&mut guest, "echo x > /wordpress/wp-content/new.php").code(),
        0
    );
}

#[test]
fn plugin_edit_takes_effect_with_a_warm_opcode_cache() {
    let source = directory("cached");
    fs::write(
        source.join("cached.php"),
        "<?php\n/* Plugin Name: Cached */\nfunction cached_value() { return 'one'; }\n",
    )
    .unwrap();
    let spec = Spec {
        mounts: vec![mount(0, &source, "/wordpress/wp-content/plugins/cached")],
        ..Spec::default()
    };
    let mut guest = spec.launch();
    run(&mut guest, &["wp", "plugin", "activate", "cached"]).ok();
    for _ in 0..2 {
        assert_eq!(wp_php(&mut guest, "echo cached_value();").ok(), "one");
    }
    sh(&mut guest, "sed -i s/one/two/ /workspace/cached/cached.php").ok();
    assert_eq!(wp_php(&mut guest, "echo cached_value();").ok(), "two");
    let result = wp_php(
        &mut guest,
        "echo count(opcache_get_status()['scripts'] ?? []), ini_get('opcache.file_cache_only'), ' ', extension_loaded('wp_codebox') ? 'ours' : 'none', ' ', ini_get('ffi.enable');",
    );
    assert_eq!(result.ok(), "01 none 0");
}

#[test]
fn opcode_cache_changes_stay_in_the_guest_that_made_them() {
    let opcache = Path::new(&template().opcache);
    let before = tree(opcache);
    assert!(
        before
            .keys()
            .any(|name| name.ends_with("/wordpress/wp-load.php.bin")),
        "the cache is warm"
    );
    assert!(
        before
            .keys()
            .any(|name| name.ends_with("/run/codebox/wp-cli/vendor/autoload.php.bin")),
        "also for WP-CLI"
    );
    let poison = "f=$(find /var/cache/codebox/opcache -name wp-load.php.bin); head -c 100 /dev/zero > $f && wc -c < $f";
    let mut first = guest();
    let mut second = guest();
    assert_eq!(
        sh(&mut first, poison).ok().trim(),
        "100",
        "it is writable in a guest's own view"
    );
    let size = sh(
        &mut second,
        "wc -c < $(find /var/cache/codebox/opcache -name wp-load.php.bin)",
    )
    .ok();
    assert_ne!(size.trim(), "100");
    drop((first, second));
    assert_eq!(tree(opcache), before);
}

#[test]
fn guests_do_not_see_each_others_files_or_database() {
    let (mut first, mut second) = (guest(), guest());
    let places = [
        "/tmp",
        "/home/agent",
        "/dev/shm",
        "/wordpress/wp-content",
        "/var/cache/codebox/opcache",
    ];
    for place in places {
        sh(&mut first, &format!("echo mine > {place}/marker")).ok();
        assert_eq!(
            sh(&mut first, &format!("cat {place}/marker")).ok(),
            "mine\n"
        );
        assert_ne!(
            sh(&mut second, &format!("cat {place}/marker")).code(),
            0,
            "{place}"
        );
    }
    sh(&mut first, "wp option update blogname changed --quiet").ok();
    assert_eq!(
        run(&mut second, &["wp", "option", "get", "blogname"]).ok(),
        "Codebox\n"
    );
}

#[test]
fn template_is_reused_until_wordpress_core_changes() {
    let first = template();
    let mut times = Vec::new();
    for _ in 0..9 {
        let start = Instant::now();
        assert_eq!(ensure_template(&template_request()).unwrap(), *first);
        times.push(start.elapsed());
    }
    times.sort();
    println!("template hit, median: {:?}", times[4]);
    let copy = directory("core");
    let status = std::process::Command::new("cp")
        .arg("-rpT")
        .arg(&fixture().wordpress)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(status.success());
    let request = TemplateRequest {
        wordpress: &copy,
        ..template_request()
    };
    assert_eq!(
        ensure_template(&request).unwrap().key,
        first.key,
        "an equal copy is the same template"
    );
    fs::write(copy.join("wp-config.php"), "<?php // another parent\n").unwrap();
    assert_eq!(
        ensure_template(&request).unwrap().key,
        first.key,
        "the configuration takes no part"
    );
    let load = copy.join("wp-load.php");
    let text = fs::read_to_string(&load).unwrap();
    fs::write(&load, text + "\n").unwrap();
    let second = ensure_template(&request).unwrap();
    assert_ne!(second.key, first.key);
    assert!(Path::new(&first.core).exists() && Path::new(&second.core).exists());
}

#[test]
fn failed_template_build_leaves_no_files_and_removes_abandoned_and_month_old_templates() {
    let copy = directory("broken");
    let status = std::process::Command::new("cp")
        .arg("-rpT")
        .arg(&fixture().wordpress)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(status.success());
    fs::write(
        copy.join("wp-settings.php"),
        "<?php fwrite(STDERR, 'settings broken'); exit(3);",
    )
    .unwrap();
    // A sweep removes the directory of a crashed builder and a template that was not used for long;
    // a recently used template stays.
    let state = directory("state");
    for name in [".tmp-999", "old", "fresh"] {
        let path = state.join("templates").join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("template.json"), "{}").unwrap();
    }
    let record = fs::File::open(state.join("templates/old/template.json")).unwrap();
    let month = std::time::Duration::from_secs(31 * 24 * 3600);
    record
        .set_modified(std::time::SystemTime::now() - month)
        .unwrap();
    let error = ensure_template(&TemplateRequest {
        wordpress: &copy,
        state_dir: &state,
        ..template_request()
    })
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::TemplateFailed);
    assert!(error.to_string().contains("settings broken"), "{error}");
    let left = |state: &Path| -> Vec<String> {
        fs::read_dir(state.join("templates"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let left = left(&state);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&".lock".to_owned()) && left.contains(&"fresh".to_owned()));
    let empty = directory("empty");
    let error = ensure_template(&TemplateRequest {
        wordpress: &empty,
        ..template_request()
    })
    .unwrap_err();
    assert!(matches!(error, TemplateError::NotWordPress { .. }));
    let error = ensure_template(&TemplateRequest {
        share_dir: &empty,
        ..template_request()
    })
    .unwrap_err();
    assert!(matches!(error, TemplateError::Share { .. }));
}

#[test]
fn php_layout_is_cached_until_the_php_binary_changes() {
    let state = directory("php-state");
    let php = Path::new("/usr/bin/php");
    let first = PhpLayout::discover(php, &state).unwrap();
    assert!(first.extensions.iter().any(|e| e.file.contains("opcache")));
    let entry = fs::read_dir(state.join("cache")).unwrap().next().unwrap();
    let cache = entry.unwrap().path();
    let text = fs::read_to_string(&cache).unwrap();
    // The cache file gets a forged version. The result has that version, so the cache was used. A
    // cache that records a different PHP program file is not used.
    let forged = text.replace(&first.version, "8.99.1");
    fs::write(&cache, &forged).unwrap();
    assert_eq!(PhpLayout::discover(php, &state).unwrap().version, "8.99.1");
    let stale = forged.replacen("\"binary\":[", "\"binary\":[1,", 1);
    assert_ne!(stale, forged);
    fs::write(&cache, stale).unwrap();
    assert_eq!(PhpLayout::discover(php, &state).unwrap(), first);
}

#[test]
fn concurrent_template_builds_give_one_template() {
    let state = directory("two");
    let build = || {
        ensure_template(&TemplateRequest {
            state_dir: &state,
            ..template_request()
        })
        .unwrap()
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(build);
        (build(), other.join().unwrap())
    });
    assert_eq!(first, second);
    assert_eq!(
        fs::read_dir(state.join("templates")).unwrap().count(),
        2,
        "it and the lock"
    );
}

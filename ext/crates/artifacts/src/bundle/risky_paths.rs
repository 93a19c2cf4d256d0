//! Changed paths that influence which code a server or WordPress runs, beyond the changed code
//! itself.

/// Configuration files that Apache, PHP or IIS reads from a served directory.
const SERVER_CONFIGURATION: [&str; 5] = [
    ".htaccess",
    ".htpasswd",
    ".user.ini",
    "php.ini",
    "web.config",
];

/// File extensions that common server configurations pass to PHP, in addition to `.php`.
const OTHER_PHP: [&str; 10] = [
    ".phtml", ".pht", ".phps", ".php2", ".php3", ".php4", ".php5", ".php6", ".php7", ".php8",
];

/// Drop-ins from `_get_dropins()` of WordPress core with distinctive names. Plugins copy drop-ins
/// into `wp-content`, so these names are flagged in every directory.
const DROP_INS: [&str; 9] = [
    "advanced-cache.php",
    "blog-deleted.php",
    "blog-inactive.php",
    "blog-suspended.php",
    "db-error.php",
    "fatal-error-handler.php",
    "object-cache.php",
    "php-error.php",
    "sunrise.php",
];

/// Drop-ins with common names, flagged only directly below `wp-content`.
const COMMON_DROP_INS: [&str; 3] = ["db.php", "install.php", "maintenance.php"];

/// Returns the risk flags of a path in `changed-files.json`, derived from its name alone. The
/// comparison ignores case, as case-insensitive file systems do.
pub(super) fn flags_of(path: &str) -> Vec<&'static str> {
    // A path that is not UTF-8 is C-quoted, with quotes around the whole path.
    let lower = path.trim_matches('"').to_ascii_lowercase();
    let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let below_content = directories.rsplit('/').next() == Some("wp-content");
    [
        ("server-configuration", SERVER_CONFIGURATION.contains(&name)),
        // PHP reads `phar://x.phar.zip` like `x.phar`.
        (
            "executable-archive",
            name.ends_with(".phar") || name.contains(".phar."),
        ),
        (
            "unusual-php-file",
            OTHER_PHP.iter().any(|end| name.ends_with(end)),
        ),
        // The path `mu-plugins` itself is flagged too, because it may be a symbolic link.
        (
            "must-use-plugin",
            lower.split('/').any(|part| part == "mu-plugins"),
        ),
        (
            "drop-in",
            DROP_INS.contains(&name) || (below_content && COMMON_DROP_INS.contains(&name)),
        ),
    ]
    .into_iter()
    .filter_map(|(flag, holds)| holds.then_some(flag))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_server_configuration_phar_archives_mu_plugins_and_drop_ins_get_risk_flags() {
        let content = "/wordpress/wp-content";
        for (path, flags) in [
            ("/plugins/p/.htaccess", vec!["server-configuration"]),
            ("/plugins/p/x/.HTaccess", vec!["server-configuration"]),
            ("/plugins/p/.htpasswd", vec!["server-configuration"]),
            ("/plugins/p/.user.ini", vec!["server-configuration"]),
            ("/plugins/p/php.ini", vec!["server-configuration"]),
            ("/plugins/p/web.config", vec!["server-configuration"]),
            ("/plugins/p/x.phar", vec!["executable-archive"]),
            ("/plugins/p/x.PHAR", vec!["executable-archive"]),
            ("/plugins/p/x.phar.zip", vec!["executable-archive"]),
            ("/plugins/p/x.phtml", vec!["unusual-php-file"]),
            ("/plugins/p/x.php7", vec!["unusual-php-file"]),
            ("/mu-plugins", vec!["must-use-plugin"]),
            ("/mu-plugins/x.php", vec!["must-use-plugin"]),
            (
                "/mu-plugins/x/.htaccess",
                vec!["server-configuration", "must-use-plugin"],
            ),
            ("/object-cache.php", vec!["drop-in"]),
            ("/plugins/p/advanced-cache.php", vec!["drop-in"]),
            ("/sunrise.php", vec!["drop-in"]),
            ("/db.php", vec!["drop-in"]),
            ("/maintenance.php", vec!["drop-in"]),
            // Controls: paths without flags.
            ("/plugins/p/db.php", vec![]),
            ("/plugins/p/install.php", vec![]),
            ("/plugins/p/htaccess.md", vec![]),
            ("/plugins/p/x.htaccess", vec![]),
            ("/plugins/p/user.ini", vec![]),
            ("/plugins/p/phar.php", vec![]),
            ("/plugins/p/x.php", vec![]),
            ("/plugins/p/x.phpt", vec![]),
            ("/plugins/p/my-mu-plugins/x.php", vec![]),
        ] {
            assert_eq!(flags_of(&format!("{content}{path}")), flags, "{path}");
        }
        assert_eq!(
            flags_of("\"/wordpress/wp-content/plugins/p/\\377/.htaccess\""),
            ["server-configuration"]
        );
    }
}

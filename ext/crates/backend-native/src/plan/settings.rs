//! The environment and the php.ini of a guest: made from nothing of the host's.

use super::PROGRAMS;
use crate::php::PhpLayout;
use std::collections::BTreeMap;

/// Home directory inside.
pub(super) const HOME: &str = "/home/agent";
/// Where PHP keeps compiled files inside.
pub(crate) const OPCACHE: &str = "/var/cache/codebox/opcache";

/// The environment every execution starts from; nothing of the host's enters.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    let path = format!(
        "{PROGRAMS}:/opt/codebox/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    );
    [
        ("HOME", HOME),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("SHELL", "/bin/bash"),
        ("PATH", path.as_str()),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("CODEBOX_TASK", "/run/codebox/task.json"),
        ("WP_CLI_DISABLE_AUTO_CHECK_UPDATE", "1"),
        ("WP_CLI_CACHE_DIR", "/tmp/.wp-cli-cache"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// The guest's php.ini.
#[must_use]
pub fn php_ini(php: &PhpLayout) -> String {
    let mut text = String::from(
        "; Made for this guest: nothing of the host's configuration applies.\n\
         memory_limit=-1\nmax_execution_time=0\ndisplay_errors=stderr\nlog_errors=0\n\
         error_reporting=32767\nhtml_errors=0\nvariables_order=GPCS\ndate.timezone=UTC\n\
         short_open_tag=0\nsys_temp_dir=/tmp\nsession.save_path=/tmp\nuser_ini.filename=\n\
         sendmail_path=/bin/false\nphar.readonly=1\nzend.assertions=-1\n\
         zend.exception_ignore_args=0\n",
    );
    text.push_str(&format!("extension_dir={}\n", php.extension_dir));
    for extension in &php.extensions {
        let key = if extension.zend {
            "zend_extension"
        } else {
            "extension"
        };
        text.push_str(&format!("{key}={}\n", extension.file));
    }
    // A private heap per process: shared memory would be a channel between guests, and a
    // cache that is not checked against the files would run what is no longer there.
    text.push_str(&format!(
        "ffi.enable=0\nopcache.enable=1\nopcache.enable_cli=1\nopcache.file_cache={OPCACHE}\n\
         opcache.file_cache_only=1\nopcache.validate_timestamps=1\nopcache.revalidate_freq=0\n\
         opcache.file_cache_consistency_checks=1\nopcache.jit=disable\nopcache.jit_buffer_size=0\n"
    ));
    text
}

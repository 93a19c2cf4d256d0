//! Environment and php.ini of a guest, generated without values of the host.

use crate::php::PhpLayout;
use std::collections::BTreeMap;

/// Directory in the guest that the guest's `PATH` lists first.
pub(super) const PROGRAMS: &str = "/run/codebox/bin";
/// Path in the guest of the parent directory of agent programs.
pub const AGENTS: &str = "/opt/agents";
/// Guest directory of the WASI tools and their runner. The name of an agent preset does not begin
/// with a dot, so no preset has this directory.
pub const WASI_TOOLS: &str = "/opt/agents/.wasi";
/// Path in the guest of the host's share directory (WP-CLI and the guest programs).
pub(crate) const SHARE: &str = "/opt/codebox";
/// Path in the guest of WP-CLI's files, which the template's build unpacks from the phar of [`SHARE`].
pub(crate) const WP_CLI: &str = "/run/codebox/wp-cli";
/// System-wide git configuration in the guest. [`environment`] also passes this path, because git
/// may be built with a different default path.
pub(super) const GIT_SETTINGS: &str = "/etc/gitconfig";
/// Home directory of the user in the guest.
pub(super) const HOME: &str = "/home/agent";
/// Path in the guest of the unix socket of the egress bridge, the supervisor's proxy to the network.
pub(super) const EGRESS_SOCKET: &str = "/run/codebox/egress.sock";
/// Port of the egress bridge on the guest's 127.0.0.1, for clients without unix sockets.
pub(super) const EGRESS_PORT: u16 = 3128;
/// Port for mail in the guest: the default of every mail library.
pub(super) const MAIL_PORT: u16 = 25;
/// Path in the guest of the CA certificate. With its key the egress bridge signs certificates for
/// the hosts that the guest contacts.
pub(super) const EGRESS_AUTHORITY: &str = "/run/codebox/egress-ca.pem";
/// Directory of PHP's opcode file cache in the guest.
pub(crate) const OPCACHE: &str = "/var/cache/codebox/opcache";

/// Returns the environment variables that every program in a guest gets; they contain no value of
/// the host.
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
        ("GIT_CONFIG_SYSTEM", GIT_SETTINGS),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("WP_CLI_DISABLE_AUTO_CHECK_UPDATE", "1"),
        ("WP_CLI_CACHE_DIR", "/tmp/.wp-cli-cache"),
        // PHP advises the kernel to use huge pages for its memory, so only a quarter of the page
        // faults occur. The seccomp filter refuses only pages of the host's reserved pool
        // (MAP_HUGETLB).
        ("USE_ZEND_ALLOC_HUGE_PAGES", "1"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// How a guest may reach the network, as far as its plan and environment depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GuestEgress {
    /// No network: the guest has no socket to the egress bridge.
    #[default]
    Denied,
    /// The egress bridge passes TLS through unread. It terminates TLS only for clients that use the
    /// bridge's address as base URL.
    Tunnel,
    /// The egress bridge decrypts TLS. It presents a certificate for each host, signed by this
    /// run's authority.
    Terminate {
        /// Certificate of the authority in PEM format.
        authority_pem: String,
    },
}

/// Returns the environment variables that make programs in the guest use the egress bridge. In a
/// guest without a network they turn off the retries of npm, which take 70 s, and all of pip's but
/// one, without which pip prints no cause.
///
/// The CA file contains only the run's authority, because the bridge presents no other certificate
/// to the guest.
#[must_use]
pub fn egress_environment(egress: &GuestEgress) -> BTreeMap<String, String> {
    let url = format!("http://127.0.0.1:{EGRESS_PORT}");
    let local = "localhost,127.0.0.1,::1";
    let mut rows = match egress {
        GuestEgress::Denied => vec![("npm_config_fetch_retries", "0"), ("PIP_RETRIES", "1")],
        GuestEgress::Tunnel | GuestEgress::Terminate { .. } => vec![
            ("http_proxy", url.as_str()),
            ("https_proxy", &url),
            ("HTTP_PROXY", &url),
            ("HTTPS_PROXY", &url),
            ("no_proxy", local),
            ("NO_PROXY", local),
            ("CODEBOX_EGRESS_SOCKET", EGRESS_SOCKET),
            ("CODEBOX_EGRESS_URL", &url),
        ],
    };
    if let GuestEgress::Terminate { .. } = egress {
        rows.extend(
            [
                "CODEBOX_EGRESS_CA",
                "SSL_CERT_FILE",
                "CURL_CA_BUNDLE",
                "REQUESTS_CA_BUNDLE",
                "GIT_SSL_CAINFO",
                "NODE_EXTRA_CA_CERTS",
                "COMPOSER_CAFILE",
                "npm_config_cafile",
            ]
            .map(|name| (name, EGRESS_AUTHORITY)),
        );
    }
    rows.into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the php.ini lines that make PHP use the egress bridge.
pub(super) fn egress_ini(egress: &GuestEgress) -> String {
    let prepend = format!("auto_prepend_file={SHARE}/guest/egress.php\n");
    match egress {
        GuestEgress::Denied => String::new(),
        GuestEgress::Tunnel => prepend,
        GuestEgress::Terminate { .. } => {
            format!("{prepend}openssl.cafile={EGRESS_AUTHORITY}\ncurl.cainfo={EGRESS_AUTHORITY}\n")
        }
    }
}

/// Returns the text of the guest's php.ini.
#[must_use]
pub fn php_ini(php: &PhpLayout) -> String {
    let mut text = format!(
        "; Made for this guest: nothing of the host's configuration applies.\n\
         memory_limit=-1\nmax_execution_time=0\ndisplay_errors=stderr\nlog_errors=0\n\
         error_reporting=32767\nhtml_errors=0\nvariables_order=GPCS\ndate.timezone=UTC\n\
         short_open_tag=0\nsys_temp_dir=/tmp\nsession.save_path=/tmp\nuser_ini.filename=\n\
         sendmail_path={SHARE}/bin/sendmail -t -i\nphar.readonly=1\nzend.assertions=-1\n\
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
    // Opcode cache in files only: shared memory would be a channel between guests. Timestamps are
    // checked, because a cache without that check would run files that have changed or are gone.
    // Checksums are not: they cost a tenth of a WP-CLI call, and PHP refuses an incomplete file
    // by its length.
    text.push_str(&format!(
        "ffi.enable=0\nopcache.enable=1\nopcache.enable_cli=1\nopcache.file_cache={OPCACHE}\n\
         opcache.file_cache_only=1\nopcache.validate_timestamps=1\nopcache.revalidate_freq=0\n\
         opcache.file_cache_consistency_checks=0\nopcache.jit=disable\nopcache.jit_buffer_size=0\n"
    ));
    text
}

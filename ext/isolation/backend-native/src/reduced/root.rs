//! Translates guest paths to paths below a host directory (level `reduced`). Computes only; reads
//! no files.

use crate::php::PhpLayout;
use wp_codebox_contracts::{ExecRequest, GuestPath, InvalidGuestPath};

/// Guest paths below which the guest has directories of its own. Every other path is the same on
/// host and guest.
const OWN: [&str; 7] = [
    "/home/agent",
    "/opt/codebox",
    "/run/codebox",
    "/tmp",
    "/var/cache/codebox",
    "/wordpress",
    "/workspace",
];

/// Host directory below which the guest's own directories are, in place of the guest's `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestRoot {
    root: GuestPath,
}

impl GuestRoot {
    /// Creates the translation for a guest whose directories are below the absolute host path
    /// `path`.
    pub fn new(path: &str) -> Result<Self, InvalidGuestPath> {
        Ok(Self {
            root: GuestPath::new(path)?,
        })
    }

    /// Returns the absolute host path that stands for the guest's `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.root.as_str()
    }

    /// Returns true if a guest path belongs to the guest's own directories. A path that this
    /// translation has returned does not belong to them, so a second translation does not change
    /// the path.
    #[must_use]
    pub fn owns(&self, path: &str) -> bool {
        let below = |own: &str| {
            path.strip_prefix(own)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let already = path
            .strip_prefix(self.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        !already && OWN.iter().any(|own| below(own))
    }

    /// Translates a guest path: to a path below the host directory if it is one of the guest's own,
    /// otherwise unchanged.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        if self.owns(path) {
            self.below(path)
        } else {
            path.to_owned()
        }
    }

    /// Returns the absolute path below the host directory, also for a path that is not one of the
    /// guest's own.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}{path}", self.as_str())
    }

    /// Translates an argument that is a whole path or has the form `--name=/path`. Text that merely
    /// contains paths, such as a script, stays unchanged.
    #[must_use]
    pub fn argument(&self, text: &str) -> String {
        match text.split_once('=') {
            Some((name, value)) if name.starts_with('-') => {
                format!("{name}={}", self.path(value))
            }
            _ => self.path(text),
        }
    }

    /// Translates the value of an environment variable: a path, or a list of paths separated by
    /// `:`.
    #[must_use]
    pub fn value(&self, text: &str) -> String {
        let parts: Vec<_> = text.split(':').map(|part| self.path(part)).collect();
        parts.join(":")
    }

    /// Translates lines of the form `key=/path`, for example of a php.ini.
    #[must_use]
    pub fn assignments(&self, text: &str) -> String {
        let line = |line: &str| match line.split_once('=') {
            Some((key, value)) => format!("{key}={}\n", self.path(value)),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    /// Translates all paths in a request to start a program. The added variable `CODEBOX_ROOT`
    /// gives programs the host path of the guest's own directories; PHPRC points PHP to the
    /// generated php.ini.
    pub fn request(
        &self,
        request: &ExecRequest,
        php: &PhpLayout,
    ) -> Result<ExecRequest, InvalidGuestPath> {
        let mut env: std::collections::BTreeMap<_, _> = request
            .env
            .iter()
            .map(|(name, value)| (name.clone(), self.value(value)))
            .collect();
        // An empty element is PHP's built-in directory, which has the settings of the host.
        let scanned = env.remove("PHP_INI_SCAN_DIR").unwrap_or_default();
        let scanned: Vec<_> = scanned.split(':').filter(|part| !part.is_empty()).collect();
        for (name, value) in [
            ("CODEBOX_ROOT", self.as_str().to_owned()),
            ("PHPRC", self.below(php.guest_ini_directory())),
            ("PHP_INI_SCAN_DIR", scanned.join(":")),
        ] {
            env.insert(name.to_owned(), value);
        }
        Ok(ExecRequest {
            id: request.id.clone(),
            argv: request
                .argv
                .iter()
                .map(|word| self.argument(word))
                .collect(),
            env,
            cwd: GuestPath::new(self.path(request.cwd.as_str()))?,
            limits: request.limits,
            terminal: request.terminal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> GuestRoot {
        GuestRoot::new("/tmp/state/run/guest").unwrap()
    }

    #[test]
    fn only_paths_below_guest_directories_are_translated_to_host_paths() {
        let root = root();
        for (given, found) in [
            ("/workspace", "/tmp/state/run/guest/workspace"),
            ("/workspace/a/b c", "/tmp/state/run/guest/workspace/a/b c"),
            ("/tmp", "/tmp/state/run/guest/tmp"),
            (
                "/run/codebox/task.json",
                "/tmp/state/run/guest/run/codebox/task.json",
            ),
            ("/tmp/state/run/guest/tmp/x", "/tmp/state/run/guest/tmp/x"),
            (
                "/tmp/state/run/guestx",
                "/tmp/state/run/guest/tmp/state/run/guestx",
            ),
            ("/workspaces", "/workspaces"),
            ("/usr/bin/php", "/usr/bin/php"),
            ("workspace/a", "workspace/a"),
            ("/run", "/run"),
            ("", ""),
        ] {
            assert_eq!(root.path(given), found, "{given}");
            assert_eq!(root.path(found), found, "once is enough: {given}");
        }
    }

    #[test]
    fn guest_paths_in_arguments_path_lists_and_ini_assignments_are_translated() {
        let root = GuestRoot::new("/r").unwrap();
        assert_eq!(root.argument("--path=/wordpress"), "--path=/r/wordpress");
        assert_eq!(root.argument("x=/wordpress"), "x=/wordpress");
        assert_eq!(root.argument("cat /tmp/x"), "cat /tmp/x");
        assert_eq!(
            root.value("/opt/codebox/bin:/usr/bin:/tmp"),
            "/r/opt/codebox/bin:/usr/bin:/r/tmp"
        );
        assert_eq!(root.value("http://localhost/tmp"), "http://localhost/tmp");
        assert_eq!(
            root.assignments("; /tmp\nsys_temp_dir=/tmp\nextension_dir=/usr/lib/php\n"),
            "; /tmp\nsys_temp_dir=/r/tmp\nextension_dir=/usr/lib/php\n"
        );
    }

    #[test]
    fn exec_request_at_level_reduced_has_translated_paths_and_sets_codebox_root_and_phprc() {
        let request = ExecRequest {
            id: wp_codebox_contracts::ExecutionId::new("e").unwrap(),
            argv: ["php", "/opt/codebox/guest/run-php.php", "-"]
                .map(str::to_owned)
                .to_vec(),
            env: [("HOME", "/home/agent"), ("PHPRC", "/elsewhere")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            cwd: GuestPath::new("/workspace/a").unwrap(),
            limits: Default::default(),
            terminal: Default::default(),
        };
        let php = PhpLayout {
            binary: "/usr/bin/php8.2".to_owned(),
            version: "8.2.1".to_owned(),
            ini_directory: "/etc/php/8.2/cli".to_owned(),
            visible: None,
            extension_dir: "/usr/lib/php/20220829".to_owned(),
            extensions: Vec::new(),
            loaded: Vec::new(),
        };
        let placed = GuestRoot::new("/r")
            .unwrap()
            .request(&request, &php)
            .unwrap();
        assert_eq!(
            placed.argv,
            ["php", "/r/opt/codebox/guest/run-php.php", "-"]
        );
        assert_eq!(placed.cwd.as_str(), "/r/workspace/a");
        let env: Vec<_> = placed.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            env,
            [
                "CODEBOX_ROOT=/r",
                "HOME=/r/home/agent",
                "PHPRC=/r/etc/php/8.2/cli",
                "PHP_INI_SCAN_DIR="
            ]
        );
        // The empty element would be PHP's built-in directory, which is the host's.
        let scan = ("PHP_INI_SCAN_DIR", ":/opt/codebox/guest/check");
        let mut request = request;
        request.env.insert(scan.0.to_owned(), scan.1.to_owned());
        let placed = GuestRoot::new("/r").unwrap().request(&request, &php);
        assert_eq!(placed.unwrap().env[scan.0], "/r/opt/codebox/guest/check");
    }
}

//! From guest paths to paths below a directory of the host. Pure.

use crate::php::PhpLayout;
use wp_codebox_contracts::{ExecRequest, GuestPath, InvalidGuestPath};

/// What is the guest's own. Every other path means the same on host and guest.
const OWN: [&str; 7] = [
    "/home/agent",
    "/opt/codebox",
    "/run/codebox",
    "/tmp",
    "/var/cache/codebox",
    "/wordpress",
    "/workspace",
];

/// The host directory that stands for the guest's `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestRoot {
    root: GuestPath,
}

impl GuestRoot {
    /// A root at an absolute host path.
    pub fn new(path: &str) -> Result<Self, InvalidGuestPath> {
        Ok(Self {
            root: GuestPath::new(path)?,
        })
    }

    /// The host path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.root.as_str()
    }

    /// Whether a guest path is the guest's own.
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

    /// A path where the guest finds it: below the root when it is the guest's own.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        if self.owns(path) {
            self.below(path)
        } else {
            path.to_owned()
        }
    }

    /// An absolute path below the root, whatever it is.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}{path}", self.as_str())
    }

    /// An argument: a whole path, or the value of `--name=/path`. Text that merely contains
    /// paths, such as a script, stays as it is.
    #[must_use]
    pub fn argument(&self, text: &str) -> String {
        match text.split_once('=') {
            Some((name, value)) if name.starts_with('-') => {
                format!("{name}={}", self.path(value))
            }
            _ => self.path(text),
        }
    }

    /// The value of a variable: a path, or a list of them with `:` between.
    #[must_use]
    pub fn value(&self, text: &str) -> String {
        let parts: Vec<_> = text.split(':').map(|part| self.path(part)).collect();
        parts.join(":")
    }

    /// Lines `key=/path`, such as a php.ini.
    #[must_use]
    pub fn assignments(&self, text: &str) -> String {
        let line = |line: &str| match line.split_once('=') {
            Some((key, value)) => format!("{key}={}\n", self.path(value)),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    /// A request as the guest's first process must get it. `CODEBOX_ROOT` tells programs
    /// where the guest's own directories lie; PHP is led to the php.ini made for it.
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
        for (name, value) in [
            ("CODEBOX_ROOT", self.as_str().to_owned()),
            ("PHPRC", self.below(&php.ini_directory)),
            ("PHP_INI_SCAN_DIR", String::new()),
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
    fn own_paths_move_and_nothing_else_does() {
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
    fn arguments_lists_and_assignments() {
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
    fn a_request_finds_its_directories_and_its_php_ini() {
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
            extension_dir: "/usr/lib/php/20220829".to_owned(),
            extensions: Vec::new(),
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
    }
}

//! Rules for this project's source files that a text search can check.
//!
//! The rules cover product code only: whole-line comments, unit tests at the end of a module and
//! files below a `tests` directory are skipped. A text search finds mistakes but proves nothing
//! about isolation; the sandbox tests do that.

use crate::findings::TaskError;
use crate::tree;
use std::path::Path;

/// Maximum number of lines of a source module, without its tests.
const MAX_LINES: usize = 500;
/// Maximum number of lines of a PHP class file.
const MAX_CLASS_LINES: usize = 300;

/// Modules that consist mostly of data tables and may be longer.
const TABLES: &[&str] = &[
    "ext/isolation/launcher/src/syscalls.rs",
    "ext/core/contracts/src/code.rs",
    "ext/core/policy/src/tools/registry.rs",
    "plugin-php/includes/ErrorCode.php",
    "plugin-php/includes/WP_Codebox_API.php",
];

/// Crates that may contain unsafe code; each block needs a SAFETY comment.
const UNSAFE_ALLOWED: &[&str] = &["php", "launcher", "backend-native", "wasi"];

/// Something that only some crates may do, such as reading the environment, and the texts in source
/// code that indicate it.
struct Right {
    what: &'static str,
    holders: &'static [&'static str],
    signs: &'static [&'static str],
}

const RIGHTS: &[Right] = &[
    Right {
        what: "read the environment",
        holders: &["settings", "cli", "program", "php", "xtask"],
        signs: &["env::var", "env::vars", "env::home_dir", "getenv("],
    },
    Right {
        what: "start processes",
        holders: &[
            "launcher",
            "backend-native",
            "process-wrapper",
            "supervisor",
            "changes",
            "runs",
            "settings",
            "wasi-tools",
            "cli",
            "php",
            "xtask",
        ],
        signs: &["Command::new(", "posix_spawn", "libc::fork", "libc::exec"],
    },
    Right {
        what: "make namespace, mount, Landlock or seccomp calls",
        holders: &["launcher"],
        signs: &[
            "libc::unshare",
            "libc::setns",
            "libc::mount",
            "libc::umount",
            "libc::pivot_root",
            "libc::chroot",
            "libc::clone(",
            "SYS_unshare",
            "SYS_setns",
            "SYS_mount",
            "SYS_pivot_root",
            "SYS_clone",
            "SYS_seccomp",
            "SYS_landlock",
            "rustix::mount",
            "thread::unshare",
            "thread::move_into",
            "process::pivot_root",
            "process::chroot",
            "seccompiler::",
            "landlock::",
            "PR_SET_SECCOMP",
        ],
    },
    Right {
        what: "open network sockets",
        // The launcher opens sockets in its probes, inside an empty network namespace. The
        // supervisor receives connections into the guest as file descriptors. Without any guest,
        // `wordpress` downloads WordPress, and an apply requests pages of the changed site.
        holders: &[
            "proxy",
            "agent",
            "supervisor",
            "launcher",
            "service",
            "changes",
            "wordpress",
            "cli",
        ],
        signs: &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "AddressFamily::INET",
            "AF_INET",
            "reqwest::",
        ],
    },
];

/// Names of PHP globals and products that must not occur in crates other than `php`, because these
/// must not depend on the application that uses them.
const FOREIGN: &[&str] = &[
    "$_SERVER",
    "$_GET",
    "$_POST",
    "$GLOBALS",
    "$wpdb",
    "homeboy",
    "playground",
];

/// String literals that may contain a name of [`FOREIGN`], because a public file format requires
/// them.
const CONTRACT_WORDS: &[&str] = &["\"wordpress-playground\""];

/// Texts by which source code gets the path of the checkout at compile time.
const COMPILED_PATHS: &[&str] = &[
    "env!(\"CARGO_MANIFEST_DIR\")",
    "env!(\"CARGO_MANIFEST_PATH\")",
];

/// Returns every violation of the source rules.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    for (name, directory) in tree::crates(root)? {
        for path in tree::files(&directory.join("src"))? {
            let test =
                path.ends_with("tests.rs") || path.components().any(|c| c.as_os_str() == "tests");
            if tree::has_extension(&path, "rs") && !test {
                let shown = tree::shown(root, &path);
                findings.extend(rust(&name, &shown, &tree::read(&path)?));
            }
        }
    }
    for path in tree::files(&root.join("ext"))? {
        // That file contains the forbidden texts themselves.
        if tree::has_extension(&path, "rs") && !path.ends_with("xtask/src/source_rules.rs") {
            findings.extend(compiled_paths(
                &tree::shown(root, &path),
                &tree::read(&path)?,
            ));
        }
    }
    for (folder, most) in [
        ("plugin-php", MAX_CLASS_LINES),
        ("wp-cli", MAX_CLASS_LINES),
        ("share", MAX_LINES),
    ] {
        for path in tree::files(&root.join(folder))? {
            if tree::has_extension(&path, "php") {
                findings.extend(length(
                    &tree::shown(root, &path),
                    tree::read(&path)?.lines().count(),
                    most,
                ));
            }
        }
    }
    Ok(findings)
}

/// Returns the numbered lines of a module before its unit tests.
fn product(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line))
}

/// Returns a finding for each use of a path from compile time, in tests and build scripts too.
/// Checkouts with the same CARGO_TARGET_DIR share compiled programs, so the path may belong to
/// another checkout.
fn compiled_paths(shown: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| COMPILED_PATHS.iter().any(|sign| line.contains(sign)))
        .map(|(index, _)| {
            format!(
                "{shown}:{}: gets a path of the checkout at compile time; call std::env::var_os(\"CARGO_MANIFEST_DIR\") at run time",
                index + 1
            )
        })
        .collect()
}

fn length(shown: &str, lines: usize, most: usize) -> Option<String> {
    (lines > most && !TABLES.contains(&shown))
        .then(|| format!("{shown}: {lines} lines without tests, but at most {most} are allowed; split it by topic"))
}

fn rust(name: &str, shown: &str, text: &str) -> Vec<String> {
    let mut findings: Vec<String> = length(shown, product(text).count(), MAX_LINES)
        .into_iter()
        .collect();
    if !text.trim_start().starts_with("//!") {
        findings.push(format!(
            "{shown}: has no `//!` comment with the purpose of the module"
        ));
    }
    if (shown.ends_with("src/lib.rs") || shown.ends_with("src/main.rs"))
        && !UNSAFE_ALLOWED.contains(&name)
        && !text.contains("#![forbid(unsafe_code)]")
    {
        findings.push(format!("{shown}: must contain #![forbid(unsafe_code)]"));
    }
    // This file contains the forbidden texts itself.
    if shown.ends_with("xtask/src/source_rules.rs") {
        return findings;
    }
    for (number, line) in product(text) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for right in RIGHTS {
            if !right.holders.contains(&name)
                && let Some(sign) = right.signs.iter().find(|sign| line.contains(*sign))
            {
                findings.push(format!(
                    "{shown}:{number}: only {:?} may {}: `{sign}`",
                    right.holders, right.what
                ));
            }
        }
        if name != "php"
            && name != "xtask"
            && let Some(word) = FOREIGN.iter().find(|word| {
                CONTRACT_WORDS
                    .iter()
                    .fold(line.to_owned(), |line, data| line.replace(data, ""))
                    .contains(*word)
            })
        {
            findings.push(format!(
                "{shown}:{number}: the core names no PHP globals and no products: `{word}`"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//! Purpose.\n#![forbid(unsafe_code)]\n";

    #[test]
    fn environment_or_mount_call_outside_the_allowed_crates_is_reported() {
        let text = format!("{HEAD}fn f() {{ std::env::var(\"X\"); }}\n");
        assert_eq!(rust("policy", "ext/core/policy/src/lib.rs", &text).len(), 1);
        assert!(rust("cli", "ext/shell/cli/src/main.rs", &text).is_empty());
        let mounts = format!("{HEAD}fn f() {{ rustix::mount::mount(); }}\n");
        assert_eq!(
            rust(
                "backend-native",
                "ext/isolation/backend-native/src/plan.rs",
                &mounts
            )
            .len(),
            1
        );
        assert!(rust("launcher", "ext/isolation/launcher/src/rootfs.rs", &mounts).is_empty());
    }

    #[test]
    fn compile_time_path_of_the_checkout_is_reported() {
        let shown = "ext/core/policy/tests/plans.rs";
        let judge = |line: &str| compiled_paths(shown, &format!("{HEAD}\n{line}\n"));
        assert_eq!(
            judge("    let root = Path::new(env!(\"CARGO_MANIFEST_DIR\"));")[0]
                .split(": ")
                .next(),
            Some("ext/core/policy/tests/plans.rs:4")
        );
        assert_eq!(
            judge("        option_env!(\"CARGO_MANIFEST_DIR\"),").len(),
            1
        );
        assert!(judge("std::env::var_os(\"CARGO_MANIFEST_DIR\")").is_empty());
        assert!(judge("include!(concat!(env!(\"OUT_DIR\"), \"/schemas.rs\"))").is_empty());
    }

    #[test]
    fn name_of_another_product_is_allowed_only_in_contract_values() {
        let judge = |line: &str| {
            let text = format!("{HEAD}const A: &str = {line};\n");
            rust("recipe", "ext/core/recipe/src/lib.rs", &text).len()
        };
        assert_eq!(judge("\"wordpress-playground\""), 0);
        assert_eq!(judge("\"playground\""), 1);
        assert_eq!(judge("\"wordpress-playground-x\""), 1);
        assert_eq!(judge("[\"wordpress-playground\", \"a playground\"]"), 1);
    }

    #[test]
    fn source_rules_ignore_comments_and_unit_tests() {
        let text = format!(
            "{HEAD}// std::env::var is forbidden\n#[cfg(test)]\nmod tests {{ use std::env::vars; }}\n"
        );
        assert!(rust("policy", "ext/core/policy/src/lib.rs", &text).is_empty());
    }

    #[test]
    fn missing_module_docs_and_too_long_modules_are_findings() {
        assert_eq!(
            rust("policy", "ext/core/policy/src/lib.rs", "fn f() {}\n").len(),
            2
        );
        assert!(
            rust(
                "launcher",
                "ext/isolation/launcher/src/main.rs",
                "//! Purpose.\n"
            )
            .is_empty()
        );
        let long = format!("//! Purpose.\n{}", "fn f() {}\n".repeat(MAX_LINES));
        assert_eq!(
            rust("policy", "ext/core/policy/src/long.rs", &long).len(),
            1
        );
        let tested = format!(
            "//! Purpose.\n#[cfg(test)]\n{}",
            "fn f() {}\n".repeat(MAX_LINES)
        );
        assert!(rust("policy", "ext/core/policy/src/long.rs", &tested).is_empty());
        assert!(rust("launcher", TABLES[0], &long).is_empty());
    }
}

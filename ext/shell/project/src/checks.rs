//! Proposes checks from the test and lint configuration in a project's files.
//!
//! A check is proposed only if its program exists in the guest, which sees the mount and the host's
//! `/usr`. No tool is proposed twice. Command lines come from files of the project, which may be
//! malicious. So a check runs only in a guest, and without a shell.

use super::composer::Package;
use super::composer_script::{Command, command, tool};
use super::folder::Folder;
use super::found::Project;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Sentence for the user about a project for which no check is proposed.
pub const NO_CHECKS: &str = "no checks are proposed: the project has no runnable phpunit, phpcs or phpstan configuration and no simple Composer script named test, lint, phpcs or phpstan";

/// Directory of the host's programs, which the guest sees at the same path.
const HOST_PROGRAMS: &str = "/usr/bin";
/// Names of Composer scripts that are proposed as checks.
const SCRIPTS: [&str; 4] = ["test", "lint", "phpcs", "phpstan"];

/// Program of the guest that runs PHPUnit with WordPress loaded, like `wp-codebox phpunit`.
const WORDPRESS_PHPUNIT: &str = "wordpress-phpunit";
/// Words of bootstrap files that load the WordPress test suite. A check has no such suite, and no
/// configuration of its database.
const TEST_SUITE: [&str; 4] = [
    "WP_TESTS_DIR",
    "WP_PHPUNIT__DIR",
    "wordpress-tests-lib",
    "wp-phpunit",
];
/// Number of bytes of a bootstrap file and of its configuration that are read.
const MAX_BOOTSTRAP: u64 = 256 * 1024;

/// A tool that runs without arguments in a project that has its configuration.
struct Tool {
    /// Files that the tool reads its configuration from.
    configuration: &'static [&'static str],
    /// Programs in `vendor/bin`, the preferred one first.
    programs: &'static [&'static str],
    /// Program in [`HOST_PROGRAMS`] for projects without their own; `None` if the tool needs the
    /// project's version.
    host_program: Option<&'static str>,
    arguments: &'static str,
}

const PHPUNIT: Tool = Tool {
    configuration: &["phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist"],
    // Pest reads PHPUnit's configuration, and PHPUnit cannot run Pest's tests.
    programs: &["pest", "phpunit"],
    host_program: Some("phpunit"),
    arguments: "",
};

const PHPCS: Tool = Tool {
    configuration: &[
        ".phpcs.xml",
        "phpcs.xml",
        ".phpcs.xml.dist",
        "phpcs.xml.dist",
    ],
    programs: &["phpcs"],
    host_program: Some("phpcs"),
    arguments: "",
};

const PHPSTAN: Tool = Tool {
    configuration: &["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"],
    programs: &["phpstan"],
    // No host program: it would not find the PHPStan extensions that a configuration names, because
    // they are in the project's `vendor`.
    host_program: None,
    arguments: " analyse",
};

/// A check that the user may want to run after the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCheck {
    /// Command line for `--check`. Its working directory is the mount.
    pub command: String,
    /// Reason for the user: the file or script of the project that suggests the check.
    pub why: String,
}

/// Returns the checks that a project's files suggest, in the order in which they should run; empty if
/// there are none.
#[must_use]
pub fn proposed_checks(project: &Project) -> Vec<ProposedCheck> {
    propose(&project.root, Path::new(HOST_PROGRAMS))
}

pub(super) fn propose(root: &Path, host_programs: &Path) -> Vec<ProposedCheck> {
    let Ok(folder) = Folder::open(root) else {
        return Vec::new();
    };
    let mut proposals = Proposals {
        folder: &folder,
        host_programs,
        tools: Vec::new(),
        checks: Vec::new(),
    };
    proposals.configured(&PHPUNIT);
    if let Some(package) = Package::read(&folder) {
        for name in SCRIPTS {
            let script = package.script(name).and_then(|line| command(line, &folder));
            if let Some(script) = script {
                proposals.add(script, format!("composer.json has the script {name:?}"));
            }
        }
    }
    proposals.configured(&PHPCS);
    proposals.configured(&PHPSTAN);
    proposals.checks
}

/// The checks proposed so far.
struct Proposals<'a> {
    folder: &'a Folder,
    host_programs: &'a Path,
    tools: Vec<String>,
    checks: Vec<ProposedCheck>,
}

impl Proposals<'_> {
    /// Proposes a tool if the project has its configuration: with the program in `vendor/bin`,
    /// otherwise with the host's program.
    fn configured(&mut self, given: &Tool) {
        let mut files = given.configuration.iter();
        let Some(file) = files.find(|file| self.folder.is_file(file)) else {
            return;
        };
        let mut own = given
            .programs
            .iter()
            .map(|name| format!("vendor/bin/{name}"));
        let (program, why) = if let Some(path) = own.find(|path| self.folder.is_program(path)) {
            (path, format!("the project has {file}"))
        } else if let Some(name) = given.host_program.filter(|name| self.host_has(name)) {
            let why = format!(
                "the project has {file}, but no vendor/bin/{name}: the check runs the host's program, without what composer install would add"
            );
            (name.to_owned(), why)
        } else {
            return;
        };
        let tool = tool(&program).to_owned();
        if tool == "phpunit"
            && let Some(bootstrap) = self.wordpress_bootstrap(file)
        {
            let line = WORDPRESS_PHPUNIT.to_owned();
            let why = format!(
                "the project has {file}, whose bootstrap file {bootstrap} loads the WordPress test suite: the check loads WordPress instead, like wp-codebox phpunit"
            );
            return self.add(Command { tool, line }, why);
        }
        let line = format!("{program}{}", given.arguments);
        self.add(Command { tool, line }, why);
    }

    /// Returns the bootstrap file that a PHPUnit configuration names, if it loads the WordPress test
    /// suite.
    fn wordpress_bootstrap(&self, configuration: &str) -> Option<String> {
        let text = |name: &str| {
            let bytes = self.folder.content(name, MAX_BOOTSTRAP)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let configuration = text(configuration)?;
        let (_, rest) = configuration.split_once("bootstrap=")?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let name = rest.get(1..)?.split(quote).next()?;
        let name = name.strip_prefix("./").unwrap_or(name);
        let code = text(name)?;
        let wanted = TEST_SUITE.iter().any(|word| code.contains(word));
        wanted.then(|| name.to_owned())
    }

    fn add(&mut self, command: Command, why: String) {
        let tool = match command.tool.as_str() {
            "pest" | "paratest" => "phpunit".to_owned(),
            _ => command.tool,
        };
        if self.tools.contains(&tool) {
            return;
        }
        self.tools.push(tool);
        self.checks.push(ProposedCheck {
            command: command.line,
            why,
        });
    }

    /// Returns true if the host has the program and the guest sees it too. A link that leads out of
    /// `/usr`, such as one to `/etc/alternatives`, does not count: its target is not in the guest.
    fn host_has(&self, name: &str) -> bool {
        let Ok(programs) = self.host_programs.canonicalize() else {
            return false;
        };
        let Ok(program) = programs.join(name).canonicalize() else {
            return false;
        };
        let visible = programs.parent().unwrap_or(&programs);
        program.starts_with(visible)
            && program
                .metadata()
                .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    }
}

//! Attacks on the host's git: what a source's own repository names must not reach the guest.
//!
//! What hides it is the runner's work, so a whole run of `wp-codebox` is attacked.

use crate::scenarios::Sight;
use crate::world::{tree, world};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The runner under test, opened before the suite gives up root: its directory may be closed to
/// the user that starts the guests.
static RUNNER: OnceLock<File> = OnceLock::new();

/// Opens the runner: named by the caller, or built by cargo for this profile.
pub fn hold_runner() {
    let path = std::env::var_os("CODEBOX").map_or_else(built_runner, PathBuf::from);
    RUNNER.get_or_init(|| File::open(path).unwrap());
}

fn built_runner() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "wp-codebox-cli"])
        .current_dir(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "the runner does not build");
    let deps = std::env::current_exe().unwrap();
    deps.ancestors().nth(2).unwrap().join("wp-codebox")
}

fn runner() -> PathBuf {
    let path = world().root.join("wp-codebox");
    if !path.exists() {
        let mut copy = File::create(&path).unwrap();
        std::io::copy(&mut RUNNER.get().unwrap(), &mut copy).unwrap();
        copy.set_permissions(fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    path
}

/// Says what worked, a word each. `{BESIDE}` is a host directory beside the source.
const ATTACK: &str = "
cd \"$(dirname \"$0\")\" || exit
token=what-the-host-keeps
token=\"$token-secret\"
git config --get remote.origin.url | grep -q \"$token\" && echo remote
git config --get http.extraheader | grep -q \"$token\" && echo header
git config --get attack.included
grep -rqs \"$token\" .git /run/codebox/git* && echo files
[ -x \"$(git rev-parse --git-path hooks)/pre-commit\" ] && git -c user.name=x -c user.email=x@localhost commit --allow-empty -qm x && echo hook
git status >/dev/null; [ -e monitored ] && echo fsmonitor
mkdir -p \"$(git rev-parse --git-path objects/info)\"
echo '{BESIDE}/.git/objects' >>\"$(git rev-parse --git-path objects/info/alternates)\"
git cat-file -e {OBJECT} 2>/dev/null && echo alternates
git --git-dir '{BESIDE}/.git' log >/dev/null 2>&1 && echo directory
for file in $(git rev-parse --git-path objects)/.. /run/codebox/git-objects/*; do touch \"$file/written-by-guest\"; done
echo written-by-guest | git hash-object -w --stdin >/dev/null && git gc -q --prune=now
echo done
";

/// Under which repositories the guest tries it.
const CHOICES: [&str; 2] = ["baseline", "history"];

/// A repository, what its settings name, and another one beside it.
struct Source {
    _root: tempfile::TempDir,
    work: PathBuf,
}

impl Source {
    fn make() -> Self {
        // Not in the suite's own directory: that may lie below /dev, of which nothing is mounted.
        let root = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [beside, secrets, work] = ["beside", "secrets", "work"].map(|name| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        fs::write(beside.join("file"), "of another repository\n").unwrap();
        for at in [&beside, &work] {
            git(at, &["init", "-q", "-b", "main"]);
        }
        git(&beside, &["add", "-A"]);
        git(&beside, &["commit", "-qm", "beside"]);
        let object = git(&beside, &["rev-parse", "HEAD:file"]);
        let included = secrets.join("included");
        fs::write(&included, "[attack]\n\tincluded = include\n").unwrap();
        let attack = ATTACK
            .replace("{BESIDE}", beside.to_str().unwrap())
            .replace("{OBJECT}", object.trim());
        fs::write(work.join("attack.sh"), attack).unwrap();
        // In the work tree, so that a setting that entered a guest would find it there, too.
        program(&work.join("monitor"), "touch monitored\n");
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-qm", "real"]);
        program(&work.join(".git/hooks/pre-commit"), "exit 0\n");
        let settings = format!(
            "[remote \"origin\"]\n\turl = https://what-the-host-keeps-secret@example.org/x.git\n\
             [http]\n\textraheader = what-the-host-keeps-secret\n\
             [include]\n\tpath = {}\n[core]\n\tfsmonitor = ./monitor\n",
            included.display()
        );
        let config = work.join(".git/config");
        let mut config = File::options().append(true).open(config).unwrap();
        config.write_all(settings.as_bytes()).unwrap();
        Self { _root: root, work }
    }

    /// What the script does outside of a guest, in the repository itself.
    fn control(&self) -> String {
        let before = tree(&self.work.join(".git"));
        let said = clean(Command::new("sh"))
            .arg(self.work.join("attack.sh"))
            .output()
            .unwrap();
        let written = tree(&self.work.join(".git")) != before;
        words(&String::from_utf8_lossy(&said.stdout), written)
    }

    /// What it does in a guest that has this repository of the source.
    fn inside(&self, choice: &str) -> String {
        let world = world();
        let state = world.root.join("git-state");
        if !state.exists() {
            fs::create_dir(&state).unwrap();
            fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let before = tree(&self.work);
        let ran = clean(Command::new(runner()))
            .args(["run", "--json", "--git", choice, "--share", &world.share])
            .args(["--launcher".as_ref(), world.launcher.as_os_str()])
            .args(["--wordpress".as_ref(), world.wordpress.as_os_str()])
            .args(["--state".as_ref(), state.as_os_str()])
            .arg("--mount")
            .arg(format!("{}:/workspace/source", self.work.display()))
            .args(["--agent-command", "sh attack.sh"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let answer: serde_json::Value = serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&ran.stderr)));
        let said = &answer["result"]["transcript"]["executions"][0]["stdout"];
        let Some(said) = said.as_str().filter(|said| said.contains("done")) else {
            panic!("{choice}: {text}");
        };
        words(said, tree(&self.work) != before)
    }
}

/// Tries everything under each repository; the control tries it on the host.
pub fn config() -> Sight {
    let source = Source::make();
    let seen: Vec<String> = CHOICES.iter().map(|choice| source.inside(choice)).collect();
    let inside = match seen.iter().all(|seen| seen == "nothing") {
        true => "nothing".to_owned(),
        false => seen.join("; "),
    };
    (inside, source.control())
}

fn words(said: &str, written: bool) -> String {
    let mut all: Vec<&str> = said
        .lines()
        .filter(|word| !matches!(*word, "" | "done"))
        .collect();
    if written {
        all.push("written");
    }
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(" "),
    }
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Without settings of the user that runs the suite.
fn clean(mut command: Command) -> Command {
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/nonexistent");
    command
}

fn git(at: &Path, arguments: &[&str]) -> String {
    let output = clean(Command::new("git"))
        .args(["-c", "user.name=x", "-c", "user.email=x@localhost"])
        .args(arguments)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

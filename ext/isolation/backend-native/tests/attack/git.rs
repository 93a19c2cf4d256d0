//! Attacks on the host's git: settings of the repository in a mount source must not take effect in
//! the guest.
//!
//! The supervisor, and not the launcher, hides the repository from the guest. So the attack needs a
//! complete `wp-codebox` run.

use crate::fixture::{fixture, tree};
use crate::scenarios::Observations;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Descriptor of the program `wp-codebox`, opened while the suite is still root: the unprivileged
/// user of the guests may be unable to open its directory.
static RUNNER: OnceLock<File> = OnceLock::new();

/// Opens the program `wp-codebox` and stores its file descriptor in [`RUNNER`]: the program that
/// `CODEBOX` names, else one that this function builds with cargo.
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
    let path = fixture().root.join("wp-codebox");
    if !path.exists() {
        let mut copy = File::create(&path).unwrap();
        std::io::copy(&mut RUNNER.get().unwrap(), &mut copy).unwrap();
        copy.set_permissions(fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    path
}

/// Script that tries several attacks and prints one word for each that succeeds. `{BESIDE}` is a
/// host directory next to the mounted source.
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

/// Values of the option `--git` with which the attack is tried.
const CHOICES: [&str; 2] = ["baseline", "history"];

/// Source of a mount: a repository, the programs that its git settings name, and a second
/// repository next to it.
struct Source {
    _root: tempfile::TempDir,
    work: PathBuf,
}

impl Source {
    fn make() -> Self {
        // Created in /tmp, because the suite's temporary directory may lie below /dev, and a guest
        // does not mount a directory below /dev.
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
        // The program lies in the work tree, so that a git setting that reached a guest would also
        // find the program there.
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

    /// Control: runs the script on the host, in the repository itself.
    fn control(&self) -> String {
        let before = tree(&self.work.join(".git"));
        let result = clean(Command::new("sh"))
            .arg(self.work.join("attack.sh"))
            .output()
            .unwrap();
        let written = tree(&self.work.join(".git")) != before;
        words(&String::from_utf8_lossy(&result.stdout), written)
    }

    /// Runs the script in a guest of a complete run with this value of the option `--git`.
    fn inside(&self, choice: &str) -> String {
        let fixture = fixture();
        let state = fixture.root.join("git-state");
        if !state.exists() {
            fs::create_dir(&state).unwrap();
            fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let before = tree(&self.work);
        let ran = clean(Command::new(runner()))
            .args(["run", "--json", "--git", choice, "--share", &fixture.share])
            .args(["--launcher".as_ref(), fixture.launcher.as_os_str()])
            .args(["--wordpress".as_ref(), fixture.wordpress.as_os_str()])
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
        let result = &answer["result"]["transcript"]["executions"][0]["stdout"];
        let Some(result) = result.as_str().filter(|result| result.contains("done")) else {
            panic!("{choice}: {text}");
        };
        words(result, tree(&self.work) != before)
    }
}

/// Runs the attack in guests with each value of the option `--git`, and on the host as control.
pub fn config() -> Observations {
    let source = Source::make();
    let seen: Vec<String> = CHOICES.iter().map(|choice| source.inside(choice)).collect();
    let inside = match seen.iter().all(|seen| seen == "nothing") {
        true => "nothing".to_owned(),
        false => seen.join("; "),
    };
    (inside, source.control())
}

fn words(result: &str, written: bool) -> String {
    let mut all: Vec<&str> = result
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

/// Keeps the user's own git settings from affecting a command.
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

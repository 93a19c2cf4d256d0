//! Controls: the same attempts outside of any guest.
//!
//! Root's attempts are made by a helper that was started before this process became an
//! unprivileged user. A later pass as an unprivileged user takes over what root saw:
//! `CODEBOX_ATTACK_SHARED` names the directory through which the two passes talk.

use crate::table::{Place, ProbeKind};
use crate::world::world;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Directory shared by the passes as root and as an unprivileged user.
const SHARED: &str = "CODEBOX_ATTACK_SHARED";
/// Argument with which this program serves root's controls.
pub const HELPER: &str = "--root-controls";

/// Who may try things outside.
pub struct Outside {
    root: Option<Root>,
    recorded: BTreeMap<String, String>,
}

struct Root {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Answers one JSON list of arguments per line with one line: what the program said.
pub fn serve_root() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let argv: Vec<String> = serde_json::from_str(&line).unwrap();
        println!("{}", observe(&argv));
    }
}

/// What a program that ended this way has shown: its last line, else its status.
pub fn observation(out: &str, status: ExitStatus) -> String {
    if let Some(signal) = status.signal() {
        return signal_name(signal);
    }
    said(out, status.code().unwrap_or(-1))
}

/// The last line of an output, else the exit code.
pub fn said(out: &str, code: i32) -> String {
    match out.trim().lines().last() {
        Some(line) => line.trim().to_owned(),
        None => format!("exit {code}"),
    }
}

pub fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGSYS => "SIGSYS".to_owned(),
        libc::SIGKILL => "SIGKILL".to_owned(),
        libc::SIGALRM => "SIGALRM".to_owned(),
        libc::SIGXCPU => "SIGXCPU".to_owned(),
        libc::SIGXFSZ => "SIGXFSZ".to_owned(),
        other => format!("signal {other}"),
    }
}

fn observe(argv: &[String]) -> String {
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => observation(&String::from_utf8_lossy(&output.stdout), output.status),
        Err(error) => format!("not started: {error}"),
    }
}

impl Outside {
    /// Must be called before the world is made: that gives up root.
    pub fn start() -> Self {
        let root = rustix::process::geteuid().is_root().then(|| {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .arg(HELPER)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            Root {
                input: child.stdin.take().unwrap(),
                output: BufReader::new(child.stdout.take().unwrap()),
                _child: child,
            }
        });
        let recorded = std::env::var_os(SHARED)
            .map(|shared| PathBuf::from(shared).join("controls.json"))
            .and_then(|path| fs::read(path).ok())
            .map(|bytes| serde_json::from_slice(&bytes).unwrap())
            .unwrap_or_default();
        Self { root, recorded }
    }

    /// Where root's fixtures are: made here by root's helper, or by an earlier pass.
    pub fn privileged_files(&mut self) -> PathBuf {
        let place = std::env::var_os(SHARED).map_or_else(|| world().root.clone(), PathBuf::from);
        let probe = world().probe.display().to_string();
        let text = |path: PathBuf| path.display().to_string();
        let (setuid, filecap) = (text(place.join("setuid")), text(place.join("filecap")));
        if self.root.is_some() {
            for argv in [
                vec!["cp", "--no-preserve=mode", &probe, &setuid],
                vec!["chown", "0:0", &setuid],
                vec!["chmod", "4755", &setuid],
                vec!["cp", "--no-preserve=mode", &probe, &filecap],
                vec!["chown", "0:0", &filecap],
                vec!["chmod", "0755", &filecap],
                vec![&probe, "make-capable", &filecap],
            ] {
                self.as_root(argv.into_iter().map(str::to_owned).collect());
            }
        }
        place
    }

    fn as_root(&mut self, argv: Vec<String>) -> String {
        let Some(root) = &mut self.root else {
            return "needs root: start tests/sandbox/run as root".to_owned();
        };
        writeln!(root.input, "{}", serde_json::to_string(&argv).unwrap()).unwrap();
        let mut line = String::new();
        root.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What is seen outside; `id` names the vector.
    pub fn observe(&mut self, id: &str, place: Place, kind: ProbeKind, run: &[String]) -> String {
        let argv = argv(world().probe.to_str().unwrap(), kind, run);
        match place {
            Place::User => observe(&argv),
            Place::Namespace => {
                let unshare = [
                    "unshare",
                    "--map-root-user",
                    "--mount",
                    "--pid",
                    "--fork",
                    "--net",
                    "--ipc",
                    "--uts",
                    "--cgroup",
                ];
                let all: Vec<String> = unshare.iter().map(|&a| a.to_owned()).chain(argv).collect();
                observe(&all)
            }
            Place::Root => {
                if self.root.is_none()
                    && let Some(seen) = self.recorded.get(id)
                {
                    return seen.clone();
                }
                let seen = self.as_root(argv);
                self.recorded.insert(id.to_owned(), seen.clone());
                seen
            }
            Place::Neighbour | Place::Scenario => "not an outside control".to_owned(),
        }
    }

    /// Removes what root's controls made, and leaves what they saw to the pass that is not root.
    pub fn finish(&mut self, scratch: &str) {
        if self.root.is_some() {
            self.as_root(["rm", "-rf", scratch].map(str::to_owned).to_vec());
        }
        let Some(shared) = std::env::var_os(SHARED) else {
            return;
        };
        if self.root.is_some() {
            let path = PathBuf::from(shared).join("controls.json");
            let text = serde_json::to_string(&self.recorded).unwrap();
            // The directory is root's; this process no longer is.
            let script = "printf %s \"$1\" > \"$2\"";
            let path = path.display().to_string();
            self.as_root(
                ["sh", "-c", script, "sh", &text, &path]
                    .map(str::to_owned)
                    .to_vec(),
            );
        }
    }
}

/// The command line of an attempt.
pub fn argv(probe: &str, kind: ProbeKind, run: &[String]) -> Vec<String> {
    let before: &[&str] = match kind {
        ProbeKind::Native | ProbeKind::Scenario => &[probe],
        ProbeKind::Php => &["php", "-r"],
        ProbeKind::Shell => &["/bin/sh", "-c"],
    };
    before
        .iter()
        .map(|&a| a.to_owned())
        .chain(run.iter().cloned())
        .collect()
}

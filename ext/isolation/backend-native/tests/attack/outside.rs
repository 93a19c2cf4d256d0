//! Controls: the attempts of the attack table, made outside of any guest.
//!
//! Attempts of root are made by a helper process that was started before this process dropped root.
//! When the suite runs again as an unprivileged user, it reads the observations of root from the
//! directory in `CODEBOX_ATTACK_SHARED`.

use crate::fixture::fixture;
use crate::table::{ControlLocation, ProbeKind};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Environment variable with the directory in which the suite's run as root leaves files and
/// observations for the run as an unprivileged user.
const SHARED: &str = "CODEBOX_ATTACK_SHARED";
/// Argument with which this program acts as the helper process for root's controls.
pub const HELPER: &str = "--root-controls";

/// Makes attempts outside of guests.
pub struct Outside {
    root: Option<Root>,
    recorded: BTreeMap<String, String>,
}

struct Root {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Runs the helper process. Each line that it reads is a command line as a JSON list; it executes
/// the command and answers with the observation as one line.
pub fn serve_root() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let argv: Vec<String> = serde_json::from_str(&line).unwrap();
        println!("{}", observe(&argv));
    }
}

/// Returns the observation for a program that has ended: the signal that ended it, otherwise its
/// last output line, otherwise its exit code.
pub fn observation(out: &str, status: ExitStatus) -> String {
    if let Some(signal) = status.signal() {
        return signal_name(signal);
    }
    result(out, status.code().unwrap_or(-1))
}

/// Returns the last line of a program's output; without output, its exit code.
pub fn result(out: &str, code: i32) -> String {
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
    /// Starts the helper process if this process is root. Call it before the test environment is
    /// created, which drops root.
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

    /// Returns the directory with files that only root can create. The helper creates these files
    /// now, or an earlier run of the suite as root has created them.
    pub fn privileged_files(&mut self) -> PathBuf {
        let place = std::env::var_os(SHARED).map_or_else(|| fixture().root.clone(), PathBuf::from);
        let probe = fixture().probe.display().to_string();
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

    /// Makes an attempt outside of any guest and returns the observation; `id` is the vector's
    /// name.
    pub fn observe(
        &mut self,
        id: &str,
        place: ControlLocation,
        kind: ProbeKind,
        run: &[String],
    ) -> String {
        let argv = argv(fixture().probe.to_str().unwrap(), kind, run);
        match place {
            ControlLocation::User => observe(&argv),
            ControlLocation::Namespace => {
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
            ControlLocation::Root => {
                if self.root.is_none()
                    && let Some(seen) = self.recorded.get(id)
                {
                    return seen.clone();
                }
                let seen = self.as_root(argv);
                self.recorded.insert(id.to_owned(), seen.clone());
                seen
            }
            ControlLocation::Neighbour | ControlLocation::Scenario => {
                "not an outside control".to_owned()
            }
        }
    }

    /// Removes `scratch`, in which root may have created files, and stores root's observations for
    /// the run as an unprivileged user.
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
            // The helper process writes the file: the directory belongs to root, and this process
            // has dropped root.
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

/// Returns the command line with which an attempt of this kind is made.
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

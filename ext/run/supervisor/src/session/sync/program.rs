//! Starts the guest program that transfers files and sends requests to it. The program handles any
//! number of requests.
//!
//! The program's replies are untrusted: their sizes and times are limited, and a program that sends
//! an invalid reply is killed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, GuestPath, MountAccess};
use wp_codebox_runtime::{GuestMount, Launch, Runtime, Terminal};

/// Path in the guest of the program that transfers files.
const PROGRAM: &str = "/opt/codebox/guest/sync.php";
/// Time limit for one reply of the transfer program.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of the JSON line of a reply, in bytes.
const LINE: usize = 8 * 1024 * 1024;

/// The running transfer program, with its standard input and output.
#[derive(Debug)]
pub(crate) struct SyncProgram {
    pub(super) id: ExecutionId,
    input: OwnedFd,
    output: OwnedFd,
    heard: Vec<u8>,
}

/// Reply of the transfer program: a JSON object, and file content after it.
#[derive(Debug)]
pub(super) struct Answer {
    pub members: Map<String, Value>,
    pub bytes: Vec<u8>,
}

impl SyncProgram {
    /// Starts transfer program number `number` of a guest that has these mounts.
    pub(super) fn start(
        number: u32,
        mounts: &[GuestMount],
        runtime: &mut dyn Runtime,
        until: Instant,
    ) -> Result<Self, ErrorBody> {
        let unable = |error: Errno| {
            let message = format!("files cannot be synced: {error}");
            ErrorBody::new(ErrorCode::RunFailed, message)
        };
        let id = ExecutionId::new(format!("sync-{number}"))
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        let cwd = GuestPath::new("/tmp")
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        let (guests_input, input) = pipe_with(PipeFlags::CLOEXEC).map_err(unable)?;
        let (output, guests_output) = pipe_with(PipeFlags::CLOEXEC).map_err(unable)?;
        for ours in [&input, &output] {
            rustix::fs::fcntl_setfl(ours, OFlags::NONBLOCK).map_err(unable)?;
        }
        let null = OFlags::WRONLY | OFlags::CLOEXEC;
        let errors = rustix::fs::open("/dev/null", null, Mode::empty()).map_err(unable)?;
        let launch = Launch {
            id: id.clone(),
            argv: vec!["php".to_owned(), PROGRAM.to_owned()],
            env: BTreeMap::new(),
            cwd,
            terminal: Terminal::None,
        };
        let stdio = [guests_input, guests_output, errors];
        runtime.launch(&launch, stdio)?;
        let mut roots: Vec<&GuestPath> = Vec::new();
        for mount in mounts {
            if mount.access == MountAccess::Readwrite {
                roots.extend(mount.names());
            }
        }
        let mut program = Self {
            id,
            input,
            output,
            heard: Vec::new(),
        };
        let first = json!({"roots": roots}).to_string() + "\n";
        program.say(first.as_bytes(), until).map_err(|why| {
            let message = format!("files cannot be synced: {why}");
            ErrorBody::new(ErrorCode::RunFailed, message)
        })?;
        Ok(program)
    }

    pub(super) fn ask(
        &mut self,
        question: &Value,
        bytes: &[u8],
        until: Instant,
    ) -> Result<Answer, &'static str> {
        let mut said = question.to_string().into_bytes();
        said.push(b'\n');
        self.say(&said, until)?;
        self.say(bytes, until)?;
        let end = loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            if self.heard.len() > LINE {
                return Err("the transfer program's reply has no line end within 8 MiB");
            }
            self.hear(until)?;
        };
        let rest = self.heard.split_off(end + 1);
        let line = std::mem::replace(&mut self.heard, rest);
        let Ok(Value::Object(members)) = serde_json::from_slice(&line) else {
            return Err("the transfer program's reply is not a JSON object");
        };
        let length = members.get("length").and_then(Value::as_u64).unwrap_or(0);
        let most = question["most"].as_u64().unwrap_or(0);
        if length > most {
            return Err("the transfer program announces more bytes than were requested");
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        while self.heard.len() < length {
            self.hear(until)?;
        }
        let rest = self.heard.split_off(length);
        let bytes = std::mem::replace(&mut self.heard, rest);
        Ok(Answer { members, bytes })
    }

    fn say(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.input, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.input, PollFlags::OUT, until)?,
                Err(_) => return Err("the transfer program in the sandbox ended"),
            }
        }
        Ok(())
    }

    fn hear(&mut self, until: Instant) -> Result<(), &'static str> {
        let mut piece = [0_u8; 64 * 1024];
        loop {
            match rustix::io::read(&self.output, &mut piece) {
                Ok(0) => return Err("the transfer program in the sandbox ended"),
                Ok(count) => {
                    self.heard
                        .extend_from_slice(piece.get(..count).unwrap_or_default());
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.output, PollFlags::IN, until)?,
                Err(_) => return Err("the transfer program in the sandbox ended"),
            }
        }
    }
}

fn wait(fd: &OwnedFd, events: PollFlags, until: Instant) -> Result<(), &'static str> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(fd, events)], Some(&left)) {
        Ok(0) => Err("the transfer program in the sandbox does not answer"),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(_) => Err("the transfer program in the sandbox cannot be waited for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn with(answer: &'static [u8]) -> (SyncProgram, std::thread::JoinHandle<Vec<u8>>) {
        let (mut theirs_in, input) = {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            (std::fs::File::from(read), write)
        };
        let (output, theirs_out) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for ours in [&input, &output] {
            rustix::fs::fcntl_setfl(ours, OFlags::NONBLOCK).unwrap();
        }
        let thread = std::thread::spawn(move || {
            let mut out = std::fs::File::from(theirs_out);
            let _ = out.write_all(answer);
            let mut said = Vec::new();
            let _ = theirs_in.read_to_end(&mut said);
            said
        });
        let id = ExecutionId::new("sync-1").unwrap();
        let heard = Vec::new();
        (
            SyncProgram {
                id,
                input,
                output,
                heard,
            },
            thread,
        )
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn sync_program_replies_are_separated_from_the_file_bytes_that_follow() {
        let (mut program, thread) =
            with(b"{\"ok\":true,\"length\":3}\na\nb{\"ok\":false,\"code\":\"io\"}\n");
        let one = program
            .ask(&json!({"op": "read", "most": 3}), b"", soon())
            .unwrap();
        assert_eq!(one.bytes, b"a\nb");
        let two = program
            .ask(&json!({"op": "put"}), &[7; 200_000], soon())
            .unwrap();
        assert_eq!(
            (two.members["code"].as_str(), two.bytes.len()),
            (Some("io"), 0)
        );
        drop(program);
        assert!(thread.join().unwrap().ends_with(&[7; 200_000]));
    }

    #[test]
    fn invalid_or_missing_reply_of_the_sync_program_is_an_error() {
        for said in [
            &b"nonsense\n"[..],
            b"{\"ok\":true,\"length\":4}\nabcd",
            b"{\"ok\":true",
            b"[]\n",
            b"",
        ] {
            let (mut program, thread) = with(said);
            let until = Instant::now() + Duration::from_millis(300);
            let asked = program.ask(&json!({"op": "read", "most": 3}), b"", until);
            assert!(asked.is_err(), "{said:?}");
            drop(program);
            thread.join().unwrap();
        }
    }
}

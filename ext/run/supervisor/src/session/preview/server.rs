//! Web server of the guest: PHP's built-in server for the guest's WordPress.
//!
//! The server is a program in the work guest, listens on the guest's 127.0.0.1 and dies with the
//! guest. Its output is untrusted; the end of the output is stored to explain a failure.
//! [`Session::site_server`] starts the server if it is not running.

use super::output::SiteOutput;
use crate::journal::recorder::Recorder;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, GuestPath};
use wp_codebox_runtime::{Launch, Runtime, Terminal};

/// Port on the guest's 127.0.0.1 at which the web server listens.
pub(crate) const SITE_PORT: u16 = 8080;
/// PHP script that handles each request of the web server.
const ROUTER: &str = "/opt/codebox/guest/preview-router.php";
/// Document root of the web server: the directory of WordPress.
const ROOT: &str = "/wordpress";
/// Number of worker processes of the web server.
const WORKERS: &str = "4";
/// Maximum time from the start of the web server until it answers.
const READY: Duration = Duration::from_secs(15);
/// Delay between two attempts to connect to the web server while it starts.
const PAUSE: Duration = Duration::from_millis(40);

/// The web server that runs in the guest.
#[derive(Debug)]
pub(crate) struct SiteServer {
    pub(super) id: ExecutionId,
    nonce: String,
    pub(crate) output: SiteOutput,
}

impl SiteServer {
    /// Starts web server number `number` of a guest; `secrets` are environment variables for it.
    pub(super) fn start(
        number: u32,
        secrets: BTreeMap<String, String>,
        runtime: &mut dyn Runtime,
        recorder: &Recorder<'_>,
    ) -> Result<Self, ErrorBody> {
        let id = ExecutionId::new(format!("site-{number}"))
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        let nonce = nonce()?;
        let cwd =
            GuestPath::new(ROOT).map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        let mut env = secrets;
        env.extend(variables(&nonce));
        let launch = Launch {
            id: id.clone(),
            argv: program(),
            env,
            cwd,
            terminal: Terminal::None,
        };
        let (stdio, output) = streams()?;
        runtime.launch(&launch, stdio)?;
        let server = Self { id, nonce, output };
        match server.wait(runtime) {
            Ok(()) => Ok(server),
            Err(why) => {
                let _ = runtime.stop(&server.id);
                let printed = recorder.clean(server.output.tail().trim());
                let message = format!("the web server of the sandbox cannot start: {why}");
                let error = ErrorBody::new(ErrorCode::PreviewUnavailable, message);
                Err(match printed.lines().last() {
                    Some(last) if !last.is_empty() => error.hint(format!("PHP said: {last}")),
                    Some(_) | None => error,
                })
            }
        }
    }

    /// Waits until the web server answers with its nonce, a random value that no other program in
    /// the guest knows.
    fn wait(&self, runtime: &mut dyn Runtime) -> Result<(), String> {
        let until = Instant::now() + READY;
        loop {
            let why = match runtime.connect(SITE_PORT) {
                Ok(connection) => match answers(connection, &self.nonce, until) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {
                        format!(
                            "another program in the sandbox listens on port {SITE_PORT}, which the web server needs"
                        )
                    }
                    Err(error) => error.to_string(),
                },
                Err(error) => error.message,
            };
            if Instant::now() + PAUSE >= until {
                return Err(why);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn nonce() -> Result<String, ErrorBody> {
    wp_codebox_proxy::preview::Token::random().map(|token| token.reveal().to_owned())
}

fn program() -> Vec<String> {
    let mut argv = vec!["php".to_owned()];
    for setting in [
        // PHP errors go to the server's own output and not into a visitor's page.
        "display_errors=0",
        "log_errors=1",
        "max_execution_time=110",
        "memory_limit=512M",
        "post_max_size=34M",
        "upload_max_filesize=32M",
    ] {
        argv.extend(["-d".to_owned(), setting.to_owned()]);
    }
    argv.extend(["-S", &format!("127.0.0.1:{SITE_PORT}"), "-t", ROOT, ROUTER].map(str::to_owned));
    argv
}

fn variables(nonce: &str) -> BTreeMap<String, String> {
    [
        ("CODEBOX_SITE_NONCE", nonce),
        ("PHP_CLI_SERVER_WORKERS", WORKERS),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Creates the web server's standard streams: an empty input, and a pipe for output and errors.
fn streams() -> Result<([OwnedFd; 3], SiteOutput), ErrorBody> {
    let unable = |error: std::io::Error| {
        let message = format!("the web server of the sandbox cannot start: {error}");
        ErrorBody::new(ErrorCode::PreviewUnavailable, message)
    };
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| unable(e.into()))?;
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| unable(e.into()))?;
    let other = write.try_clone().map_err(unable)?;
    let output = SiteOutput::read(read).map_err(unable)?;
    Ok(([null, write, other], output))
}

/// Returns whether the server at the other end of the connection knows the nonce.
fn answers(connection: OwnedFd, nonce: &str, until: Instant) -> std::io::Result<bool> {
    let mut stream = TcpStream::from(connection);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let asked = format!(
        "GET /.codebox/ready HTTP/1.0\r\nHost: 127.0.0.1:{SITE_PORT}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(asked.as_bytes())?;
    let mut heard = Vec::new();
    let mut piece = [0_u8; 1024];
    while heard.len() < 8 * 1024 && Instant::now() < until {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        heard.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    let known = String::from_utf8_lossy(&heard);
    Ok(known
        .split_once("\r\n\r\n")
        .is_some_and(|(_, body)| body.trim() == nonce))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn preview_server_is_accepted_only_if_it_returns_the_nonce() {
        for (said, expected) in [
            (&b"HTTP/1.0 200 OK\r\n\r\nabc\n"[..], true),
            (&b"HTTP/1.0 200 OK\r\n\r\nabd"[..], false),
            (&b"abc"[..], false),
            (&b""[..], false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(said).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
            let until = Instant::now() + Duration::from_secs(60);
            assert_eq!(
                answers(client.into(), "abc", until).unwrap(),
                expected,
                "{said:?}"
            );
        }
    }
}

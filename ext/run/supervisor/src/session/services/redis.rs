//! Redis as a service.

use super::process::{Output, Server};
use crate::request::service_plan::{HOST, REDIS_PORT};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wp_codebox_backend_native::ServerProgram;
use wp_codebox_contracts::ErrorBody;
use zeroize::Zeroizing;

/// Directory of the guest in which Redis stores its data when it shuts down.
const DIRECTORY: &str = "/wordpress/wp-content/database";

/// Returns the server program.
pub(super) fn server() -> Result<Server, ErrorBody> {
    let program = ServerProgram::Redis.find()?;
    let port = REDIS_PORT.to_string();
    let mut argv = vec![program.to_owned()];
    for (setting, value) in [
        ("--bind", HOST),
        ("--port", &port),
        ("--dir", DIRECTORY),
        ("--dbfilename", "redis.rdb"),
        ("--appendonly", "no"),
        ("--daemonize", "no"),
        // With a save condition (here one change within an hour), Redis also saves its data when it
        // is asked to shut down.
        ("--save", "3600 1"),
    ] {
        argv.extend([setting.to_owned(), value.to_owned()]);
    }
    Ok(Server {
        argv,
        stdin: Zeroizing::default(),
        port: REDIS_PORT,
        output: Output::Tail,
        greets: version,
    })
}

/// Asks the server for its version. `None` while it loads its data.
fn version(mut connection: &TcpStream, wait: Duration) -> Option<String> {
    connection.set_read_timeout(Some(wait)).ok()?;
    connection.write_all(b"INFO server\r\n").ok()?;
    let mut heard = Vec::new();
    let mut piece = [0_u8; 1024];
    while heard.len() < 16 * 1024 {
        let count = connection.read(&mut piece).ok()?;
        heard.extend_from_slice(piece.get(..count)?);
        if let Some(version) = version_in(&heard) {
            return Some(version);
        }
        if count == 0 || heard.first() == Some(&b'-') {
            return None;
        }
    }
    None
}

fn version_in(heard: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(heard);
    let (_, rest) = text.split_once("redis_version:")?;
    let (version, _) = rest.split_once('\r')?;
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_redis_is_read_only_from_a_complete_redis_version_line() {
        let answer = b"$99\r\n# Server\r\nredis_version:7.0.15\r\nredis_mode:x";
        assert_eq!(version_in(answer).unwrap(), "7.0.15");
        assert_eq!(version_in(b"$99\r\n# Server\r\nredis_version:7.0"), None);
        assert_eq!(version_in(b"-LOADING\r\n"), None);
    }
}

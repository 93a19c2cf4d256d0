//! MariaDB as a service: how it starts, how to find out that it is ready, and how its password is set.

use super::process::{Output, Server};
use crate::request::service_plan::{DATABASE_PORT, HOST, USER};
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;
use wp_codebox_backend_native::{DATABASE_SETTINGS, ServerProgram};
use wp_codebox_contracts::ErrorBody;
use zeroize::Zeroizing;

/// Returns the server program. The statements on its standard input set the run's password.
pub(super) fn server(password: &Zeroizing<String>) -> Result<Server, ErrorBody> {
    let program = ServerProgram::MariaDb.find()?;
    Ok(Server {
        argv: vec![
            program.to_owned(),
            format!("--defaults-file={DATABASE_SETTINGS}"),
            // The password must be in no file and no argument, so the server reads the statements
            // that set it from its standard input, before it accepts connections.
            "--init-file=/dev/stdin".to_owned(),
        ],
        stdin: Zeroizing::new(statements(password).into_bytes()),
        port: DATABASE_PORT,
        output: Output::Tail,
        greets: version,
    })
}

/// Returns the statements that set the password of the root user. The password contains no quotes:
/// it is empty or hexadecimal.
fn statements(password: &str) -> String {
    ["localhost", HOST, "::1"]
        .map(|host| format!("ALTER USER '{USER}'@'{host}' IDENTIFIED BY '{password}';\n"))
        .concat()
}

/// Reads the greeting of the server, which it sends once it accepts clients, and returns its
/// version. `None` if the server did not send a greeting in time.
fn version(mut connection: &TcpStream, wait: Duration) -> Option<String> {
    connection.set_read_timeout(Some(wait)).ok()?;
    let mut head = [0_u8; 4];
    connection.read_exact(&mut head).ok()?;
    let length = usize::from(head[0]) | usize::from(head[1]) << 8;
    let mut body = vec![0_u8; length.min(512)];
    connection.read_exact(&mut body).ok()?;
    greeting(&body)
}

/// Returns the version in the handshake packet of protocol 10: the protocol, then text that ends
/// with a NUL byte.
fn greeting(body: &[u8]) -> Option<String> {
    let (protocol, rest) = body.split_first()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    // Some versions of MariaDB send `5.5.5-` before their version, for clients that expect MySQL.
    let version = text.strip_prefix("5.5.5-").unwrap_or(text);
    (*protocol == 10 && !version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_the_database_is_read_from_its_greeting() {
        let ours = b"\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x01\x02";
        assert_eq!(greeting(ours).unwrap(), "10.11.19-MariaDB-0+deb12u1");
        for other in [
            &b"\x0a\0"[..],
            b"\x0910.11\0",
            b"\x0a10.11",
            b"",
            b"\xff\x15\x04",
        ] {
            assert_eq!(greeting(other), None, "{other:?}");
        }
    }

    #[test]
    fn database_password_is_in_the_sql_statements_and_not_in_the_server_arguments() {
        let password = Zeroizing::new("abcdef0123456789".to_owned());
        if let Ok(server) = server(&password) {
            assert!(!server.argv.concat().contains(password.as_str()));
        }
        assert_eq!(statements(&password).matches(password.as_str()).count(), 3);
    }
}

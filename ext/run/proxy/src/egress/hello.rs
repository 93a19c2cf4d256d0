//! Reads the server name from the TLS ClientHello, the first message that a client sends in a
//! tunnel.
//!
//! The parser reads only the fields needed to find the name; the bridge forwards all bytes
//! unchanged. It refuses an encrypted ClientHello (ECH), which would hide the server name that the
//! host acts on.

use super::denial::Reason;
use bytes::BytesMut;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum size of a ClientHello in bytes, including record headers.
const MOST: usize = 16 * 1024;
/// Maximum size of a TLS record in bytes.
const MAX_RECORD: usize = 16 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Fatal `unrecognized_name` alert, sent to clients whose ClientHello is refused.
pub(super) const ALERT: &[u8] = &[21, 3, 3, 0, 2, 2, 112];

/// Reads until the ClientHello is complete. Returns its server name and all bytes read. `bytes` are
/// those that were already read from the client.
pub(super) async fn read_hello(
    stream: &mut (impl AsyncRead + Unpin),
    mut bytes: BytesMut,
    time: Duration,
) -> Result<(ServerName, BytesMut), Reason> {
    let reading = async {
        loop {
            if let Some(name) = parse(&bytes)? {
                return Ok((name, bytes));
            }
            if bytes.len() > MOST {
                return Err(Reason::NotTls);
            }
            match stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return Err(Reason::ClientGone),
                Ok(_) => {}
            }
        }
    };
    // In TLS the client speaks first, so a client that sends nothing does not speak TLS.
    tokio::time::timeout(time, reading)
        .await
        .unwrap_or(Err(Reason::NotTls))
}

/// Server name (SNI) in a ClientHello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerName {
    /// The ClientHello names no server.
    Absent,
    /// The name in lower case.
    Named(String),
}

/// Returns the server name of a ClientHello; `None` while the ClientHello is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<ServerName>, Reason> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(&[kind, high, mid, low]) = message.first_chunk::<4>() {
            if kind != CLIENT_HELLO {
                return Err(Reason::NotTls);
            }
            let length = usize::from(high) << 16 | usize::from(mid) << 8 | usize::from(low);
            if length > MOST {
                return Err(Reason::NotTls);
            }
            if let Some(body) = message.get(4..4 + length) {
                return server_name(body).map(Some);
            }
        }
        if rest.first().is_some_and(|&kind| kind != HANDSHAKE)
            || rest.get(1).is_some_and(|&major| major != 3)
        {
            return Err(Reason::NotTls);
        }
        let Some(&[_, _, _, high, low]) = rest.first_chunk::<5>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length == 0 || length > MAX_RECORD {
            return Err(Reason::NotTls);
        }
        match rest.get(5..5 + length) {
            Some(fragment) => message.extend_from_slice(fragment),
            None => return Ok(None),
        }
        rest = &rest[5 + length..];
    }
}

fn server_name(body: &[u8]) -> Result<ServerName, Reason> {
    let mut hello = Reader(body);
    hello.take(2 + 32)?;
    hello.vector8()?;
    hello.vector16()?;
    hello.vector8()?;
    if hello.0.is_empty() {
        return Ok(ServerName::Absent);
    }
    let mut extensions = Reader(hello.vector16()?);
    if !hello.0.is_empty() {
        return Err(Reason::NotTls);
    }
    let mut name = ServerName::Absent;
    let mut seen = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.vector16()?;
        if seen.contains(&kind) {
            return Err(Reason::NotTls);
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => name = ServerName::Named(single_name(content)?),
            ENCRYPTED_CLIENT_HELLO => return Err(Reason::HelloEncrypted),
            _ => {}
        }
    }
    Ok(name)
}

/// Returns the only host name of the server name list. A list of several names is refused; no
/// current TLS client sends one.
fn single_name(content: &[u8]) -> Result<String, Reason> {
    let mut outer = Reader(content);
    let mut list = Reader(outer.vector16()?);
    let kind = list.take(1)?;
    let name = list.vector16()?;
    let whole = outer.0.is_empty() && list.0.is_empty() && kind == [0];
    match std::str::from_utf8(name) {
        Ok(text) if whole && text.is_ascii() => Ok(text.to_ascii_lowercase()),
        _ => Err(Reason::NotTls),
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let (part, rest) = self.0.split_at_checked(length).ok_or(Reason::NotTls)?;
        self.0 = rest;
        Ok(part)
    }

    fn number(&mut self) -> Result<u16, Reason> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Result<&'a [u8], Reason> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn vector16(&mut self) -> Result<&'a [u8], Reason> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector16(content: &[u8]) -> Vec<u8> {
        let mut out = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(content);
        out
    }

    fn sni(name: &str) -> Vec<u8> {
        let mut entry = vec![0];
        entry.extend(vector16(name.as_bytes()));
        vector16(&entry)
    }

    fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(vector16(&[0x13, 0x01]));
        body.extend([1, 0]);
        let mut list = Vec::new();
        for (kind, content) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend(vector16(content));
        }
        body.extend(vector16(&list));
        let mut message = vec![1, 0];
        message.extend(vector16(&body));
        message
    }

    fn record(fragment: &[u8]) -> Vec<u8> {
        let mut out = vec![22, 3, 1];
        out.extend(vector16(fragment));
        out
    }

    #[test]
    fn server_name_is_read_from_a_client_hello_split_into_fragments() {
        let message = hello(&[(10, vec![0, 2, 0, 29]), (0, sni("A.example"))]);
        let named = Ok(Some(ServerName::Named("a.example".to_owned())));
        assert_eq!(parse(&record(&message)), named);
        for size in [1, 3, 50] {
            let bytes: Vec<u8> = message.chunks(size).flat_map(record).collect();
            assert_eq!(parse(&bytes), named, "fragments of {size}");
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), Ok(None), "{size} {end}");
            }
        }
        assert_eq!(parse(&record(&hello(&[]))), Ok(Some(ServerName::Absent)));
    }

    #[test]
    fn server_name_is_read_from_a_client_hello_made_by_rustls() {
        let mut roots = rustls::RootCertStore::empty();
        roots.extend(std::iter::empty::<rustls::pki_types::TrustAnchor<'static>>());
        let config = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from("b.example").unwrap();
        let mut client = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        assert_eq!(
            parse(&bytes),
            Ok(Some(ServerName::Named("b.example".to_owned())))
        );
    }

    #[test]
    fn malformed_or_encrypted_client_hello_is_refused() {
        let ech = hello(&[(0, sni("a.example")), (0xfe0d, vec![0; 8])]);
        assert_eq!(parse(&record(&ech)), Err(Reason::HelloEncrypted));
        let twice = hello(&[(0, sni("a.example")), (0, sni("b.example"))]);
        assert_eq!(parse(&record(&twice)), Err(Reason::NotTls));
        let mut two = vec![0];
        two.extend(vector16(b"a.example"));
        two.push(0);
        two.extend(vector16(b"b.example"));
        assert_eq!(
            parse(&record(&hello(&[(0, vector16(&two))]))),
            Err(Reason::NotTls)
        );
        for bytes in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"SSH-2.0-x".to_vec(),
            vec![22, 2, 0, 0, 5],
            vec![22, 3, 1, 0, 0],
            vec![22, 3, 1, 0xff, 0xff],
            record(&[2, 0, 0, 0]),
            record(&[1, 0xff, 0, 0]),
            record(&[1, 0, 0, 3, 3, 3, 0]),
        ] {
            assert_eq!(parse(&bytes), Err(Reason::NotTls), "{bytes:?}");
        }
    }
}

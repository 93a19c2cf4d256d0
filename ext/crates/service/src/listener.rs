//! Listeners of the server: a unix socket that only its owner may connect to, and TLS.

use crate::tls;
use rustls::ServerConfig;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Failures of listeners.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenerError {
    /// Another process answers on the socket.
    #[error("another server answers on {path:?}; stop it, or choose another socket")]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// There is something else at the path.
    #[error("{path:?} exists and is no socket; choose another path")]
    NoSocket {
        /// Path of the socket.
        path: PathBuf,
    },
    /// A call of the kernel failed.
    #[error("the server cannot listen on {place}: {source}; check the directory or the port")]
    Io {
        /// Path or address.
        place: String,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
}

impl From<ListenerError> for ErrorBody {
    fn from(error: ListenerError) -> Self {
        ErrorBody::new(ErrorCode::ServiceUnavailable, error.to_string())
    }
}

/// An open listener. Nothing is accepted before the server runs.
#[derive(Debug)]
pub struct Listener(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    Unix {
        listener: UnixListener,
        path: PathBuf,
    },
    Tls {
        listener: TcpListener,
        config: Arc<ServerConfig>,
    },
}

impl Listener {
    /// Listens on a unix socket with mode 0600. A socket that a killed server left behind is
    /// replaced.
    ///
    /// # Errors
    /// When another server answers on the path, or the directory is not writable.
    pub fn unix(path: &Path) -> Result<Self, ErrorBody> {
        Ok(Self(bind_unix(path)?))
    }

    /// Listens on a TCP address with TLS; the certificate chain and its key are PEM files.
    ///
    /// # Errors
    /// When the files cannot be used, or the address cannot be bound.
    pub fn tls(address: SocketAddr, certificate: &Path, key: &Path) -> Result<Self, ErrorBody> {
        let config = Arc::new(tls::server_config(certificate, key)?);
        let failed = |source| ListenerError::Io {
            place: address.to_string(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self(Kind::Tls { listener, config }))
    }

    /// Returns the TCP address, for example with the port that the kernel chose.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Unix { .. } => None,
            Kind::Tls { listener, .. } => listener.local_addr().ok(),
        }
    }
}

fn bind_unix(path: &Path) -> Result<Kind, ListenerError> {
    let failed = |source| ListenerError::Io {
        place: path.display().to_string(),
        source,
    };
    let named = || path.to_owned();
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ListenerError::NoSocket { path: named() });
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(ListenerError::InUse { path: named() });
        }
        Ok(_) | Err(_) => {}
    }
    // The socket gets its mode under another name: under its own, no process could connect in between,
    // because connecting needs write permission.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let _ = fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    let placed = fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&hidden, path))
        .and_then(|()| listener.set_nonblocking(true));
    if let Err(source) = placed {
        let _ = fs::remove_file(&hidden);
        return Err(failed(source));
    }
    Ok(Kind::Unix {
        listener,
        path: named(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_has_mode_0600_replaces_a_dead_one_and_refuses_a_live_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.sock");
        let first = Listener::unix(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let refused = Listener::unix(&path).unwrap_err();
        assert!(
            refused.message.contains("another server answers"),
            "{refused}"
        );
        drop(first);
        assert!(path.exists(), "the dead socket is still there");
        Listener::unix(&path).unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(Listener::unix(&file).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }
}

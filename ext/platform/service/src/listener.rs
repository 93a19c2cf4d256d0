//! Listeners of the server: a unix socket that only its owner, or also a group, may connect to, and
//! TLS.

use crate::tls;
use rustls::ServerConfig;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Failures of listeners.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(ServiceUnavailable)]
pub(crate) enum ListenerError {
    /// Another process answers on the socket.
    #[error("another server answers on {path:?}; stop it, or choose another socket")]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path leads to a file that is not a socket.
    #[error("{path:?} exists and is no socket; choose another path")]
    NoSocket {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The group of the socket cannot be set.
    #[error(
        "the socket {path:?} cannot get the group {gid}: {source}; start the server as root or as a member of the group, or give the directory of the socket this group and the mode 2750"
    )]
    Group {
        /// Path of the socket.
        path: PathBuf,
        /// Id of the group.
        gid: u32,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A system call failed.
    #[error("the server cannot listen on {place}: {source}; check the directory or the port")]
    Io {
        /// Path or address.
        place: String,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
}

/// Users that may connect to a unix socket. Root always may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketAccess {
    /// Its owner: mode 0600.
    Owner,
    /// Its owner and the members of a group: mode 0660.
    Group {
        /// Id of the group.
        gid: u32,
    },
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
    /// Listens on a unix socket. A socket that a killed server left behind is replaced.
    ///
    /// # Errors
    /// When another server answers on the path, the directory is not writable, or this process may
    /// not give the socket its group.
    pub fn unix(path: &Path, access: SocketAccess) -> Result<Self, ErrorBody> {
        Ok(Self(bind_unix(path, access)?))
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

    /// Returns the TCP address with its actual port; `None` for a unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Unix { .. } => None,
            Kind::Tls { listener, .. } => listener.local_addr().ok(),
        }
    }
}

fn bind_unix(path: &Path, access: SocketAccess) -> Result<Kind, ListenerError> {
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
    // Group and mode are set under a temporary name, before the rename: a client that found the
    // socket under its own name earlier could not connect, because connecting needs write
    // permission.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let _ = fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    let placed = open_to(&hidden, access).and_then(|()| {
        fs::rename(&hidden, path)
            .and_then(|()| listener.set_nonblocking(true))
            .map_err(failed)
    });
    if let Err(error) = placed {
        let _ = fs::remove_file(&hidden);
        return Err(error);
    }
    Ok(Kind::Unix {
        listener,
        path: named(),
    })
}

/// Sets group and mode of a new socket.
fn open_to(path: &Path, access: SocketAccess) -> Result<(), ListenerError> {
    let failed = |source| ListenerError::Io {
        place: path.display().to_string(),
        source,
    };
    let mode = match access {
        SocketAccess::Owner => 0o600,
        SocketAccess::Group { gid } => {
            // In a directory with the set-group-ID bit the socket has the group already, also when
            // this process may not set it.
            if fs::symlink_metadata(path).map_err(failed)?.gid() != gid {
                std::os::unix::fs::lchown(path, None, Some(gid)).map_err(|source| {
                    let path = path.to_owned();
                    ListenerError::Group { path, gid, source }
                })?;
            }
            0o660
        }
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_of_a_group_has_its_group_and_mode_0660() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.sock");
        let groups = rustix::process::getgroups().unwrap();
        let own = rustix::process::getegid();
        let other = groups.into_iter().find(|group| *group != own);
        let gid = other.unwrap_or(own).as_raw();
        let _listener = Listener::unix(&path, SocketAccess::Group { gid }).unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.mode() & 0o777, found.gid()), (0o660, gid));
    }

    #[test]
    fn listener_socket_has_mode_0600_and_replaces_only_a_socket_that_no_server_answers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.sock");
        let first = Listener::unix(&path, SocketAccess::Owner).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let refused = Listener::unix(&path, SocketAccess::Owner).unwrap_err();
        assert!(
            refused.message.contains("another server answers"),
            "{refused}"
        );
        drop(first);
        assert!(path.exists(), "the dead socket is still there");
        Listener::unix(&path, SocketAccess::Owner).unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(Listener::unix(&file, SocketAccess::Owner).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }
}

//! Address of another service.

use std::path::PathBuf;

/// Address of the other service.
#[derive(Debug, Clone)]
pub enum RemoteTarget {
    /// Its unix socket, for example of another user of this machine.
    Unix(PathBuf),
    /// Its TLS listener.
    Tls {
        /// `https://host:port`, without a path.
        url: String,
        /// PEM file of the certificate authorities to trust; `None`: those of the host.
        authorities: Option<PathBuf>,
    },
}

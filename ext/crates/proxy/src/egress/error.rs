//! Why a bridge cannot start.

use std::io;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::kernel_error;

/// Why a bridge cannot start. Nothing of a request is in here: see [`super::denial`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// No certificate of a public authority could be read.
    #[error("no trusted certificates were found; install the ca-certificates package")]
    Trust,
    /// The certificate authority of the run could not be made.
    #[error("the certificate authority of the run could not be made")]
    Authority {
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// TLS could not be set up.
    #[error("TLS could not be set up")]
    Tls {
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// A listening socket is none.
    #[error("the {what} socket of the guest cannot be served: {source}")]
    Socket {
        /// `unix` or `tcp`.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No thread could be started.
    #[error("the bridge could not start a thread: {source}")]
    Thread {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl EgressError {
    /// The error as it crosses a border.
    pub fn body(&self) -> ErrorBody {
        match self {
            Self::Trust | Self::Authority { .. } | Self::Tls { .. } => {
                ErrorBody::new(ErrorCode::EgressUnavailable, self.to_string())
            }
            Self::Socket { source, .. } | Self::Thread { source } => {
                kernel_error(ErrorCode::EgressUnavailable, self.to_string(), source)
            }
        }
    }
}

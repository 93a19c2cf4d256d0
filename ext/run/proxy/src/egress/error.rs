//! Errors that prevent an egress bridge, the proxy of a guest, from starting.

use std::io;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};
use wp_codebox_runtime::kernel_error;

/// Error that prevents a bridge from starting. Errors of single requests are in [`super::denial`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The host's certificate store contains no usable certificate.
    #[error("this host has no trusted certificates; install the ca-certificates package")]
    Trust,
    /// Generating the run's certificate authority failed.
    #[error("the run's certificate authority could not be created: {source}")]
    Authority {
        /// Error of the certificate library.
        #[source]
        source: rcgen::Error,
    },
    /// Configuring TLS failed.
    #[error(
        "the guest's network proxy (egress bridge) cannot start, because its TLS configuration failed: {source}"
    )]
    Tls {
        /// Error of the TLS library.
        #[source]
        source: rustls::Error,
    },
    /// The given descriptor is not a usable listening socket.
    #[error(
        "the guest's network proxy (egress bridge) cannot listen on its {what} socket: {source}"
    )]
    Socket {
        /// Socket kind: `unix` or `tcp`.
        what: &'static str,
        /// Error of the socket call.
        #[source]
        source: io::Error,
    },
    /// Starting the server thread failed.
    #[error(
        "the guest's network proxy (egress bridge) could not start its server thread: {source}"
    )]
    Thread {
        /// Error of the thread spawn.
        #[source]
        source: io::Error,
    },
}

impl CodedError for EgressError {
    fn code(&self) -> ErrorCode {
        self.body().code
    }

    fn body(&self) -> ErrorBody {
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

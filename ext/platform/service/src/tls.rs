//! TLS of the listener and of clients.

use crate::trust::NamedCertificates;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wp_codebox_contracts::CodedError;

/// Maximum size of a file with certificates or a key in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Failures of TLS settings.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(InputInvalid)]
pub(crate) enum TlsError {
    /// A file cannot be read.
    #[error("{path:?} cannot be read: {source}; check the path and its permissions")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than any certificate chain.
    #[error("{path:?} has more than 1 MiB; name a file with certificates or a key in PEM")]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file has no PEM of the expected kind.
    #[error("{path:?} has no {what} in PEM; check the file")]
    Pem {
        /// Path of the file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// rustls refuses certificate and key.
    #[error(
        "the certificate and the key cannot be used for TLS: {source}; check that they belong together"
    )]
    Refused {
        /// Error of rustls.
        #[from]
        source: rustls::Error,
    },
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::File {
        path: path.to_owned(),
        source,
    };
    if fs::metadata(path).map_err(failed)?.len() > LARGEST {
        let path = path.to_owned();
        return Err(TlsError::TooLarge { path });
    }
    fs::read(path).map_err(failed)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(&read(path)?)
        .flatten()
        .collect();
    match found.is_empty() {
        true => Err(TlsError::Pem {
            path: path.to_owned(),
            what: "certificate",
        }),
        false => Ok(found),
    }
}

/// Returns the configuration of a listener with a certificate chain and its key, both in PEM.
pub(crate) fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsError::Pem {
        path: key.to_owned(),
        what: "private key",
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the configuration of a client. It trusts the certificates of a file, or without one the
/// authorities of the host.
pub(crate) fn client_config(named: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    Ok(match named {
        Some(path) => {
            let verifier = NamedCertificates::new(certificates(path)?, provider)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        }
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    })
}

/// Returns the configuration of a client that never uses TLS, for HTTP libraries that require one.
pub(crate) fn no_tls() -> Result<ClientConfig, TlsError> {
    Ok(
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    )
}

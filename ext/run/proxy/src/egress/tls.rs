//! TLS client configurations of this process, with the certificate authorities each one trusts.

use super::config::Trust;
use super::error::EgressError;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Returns a client configuration that trusts the given authorities; fails when they contain no
/// certificate.
pub fn client_tls(trust: &Trust) -> Result<ClientConfig, EgressError> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Trust::Pem(pem) => {
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
        }
    }
    if roots.is_empty() {
        return Err(EgressError::Trust);
    }
    with_roots(roots)
}

/// Returns a client configuration that trusts no authority, for HTTP libraries that require one
/// although the client never uses TLS.
pub fn no_tls() -> Result<ClientConfig, EgressError> {
    with_roots(RootCertStore::empty())
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, EgressError> {
    Ok(
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|source| EgressError::Tls { source })?
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

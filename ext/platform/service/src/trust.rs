//! Verifies the certificate of another service against certificates that this server's operator
//! named.
//!
//! `openssl req -x509` marks a self-signed certificate as a CA certificate. webpki refuses a CA
//! certificate as server certificate, even if it is itself a trusted one. This verifier accepts it
//! if the server sends exactly a certificate of the operator's file: its key is then known, and no
//! CA decides anything.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Verifier that trusts the given certificates, as CA or as server certificates.
#[derive(Debug)]
pub(crate) struct NamedCertificates {
    chains: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl NamedCertificates {
    /// Creates a verifier.
    ///
    /// # Errors
    /// When none of the certificates can be used.
    pub(crate) fn new(
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(named.iter().cloned());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { chains, named })
    }
}

/// Returns whether webpki refused a server certificate only because it is a CA certificate. webpki
/// has checked the dates of the certificate before.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    matches!(
        other.0.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if is_authority(&error) && self.named.contains(end_entity) => {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&certificate, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    /// A self-signed CA certificate, as `openssl req -x509` makes it.
    fn authority(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["far.example".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn verify(
        named: &CertificateDer<'static>,
        sent: &CertificateDer<'static>,
        name: &'static str,
    ) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        NamedCertificates::new(vec![named.clone()], provider)
            .unwrap()
            .verify_server_cert(
                sent,
                &[],
                &ServerName::try_from(name).unwrap(),
                &[],
                UnixTime::now(),
            )
            .map(drop)
    }

    #[test]
    fn self_signed_certificate_is_trusted_only_if_listed_unexpired_and_issued_for_the_host() {
        let own = authority(|_| {});
        verify(&own, &own, "far.example").unwrap();
        let other = authority(|_| {});
        verify(&own, &other, "far.example").unwrap_err();
        let wrong_name = verify(&own, &own, "near.example").unwrap_err();
        assert!(matches!(
            wrong_name,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        ));
        let old = authority(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
        let expired = verify(&old, &old, "far.example").unwrap_err();
        assert!(matches!(
            expired,
            Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            )
        ));
    }
}

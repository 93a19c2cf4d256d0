//! The certificate authority of one run, and the certificates that it signs for network hosts.
//!
//! The private key exists only in this process's memory. Only the run's guest trusts the
//! authority's certificate. The bridge signs certificates only for hosts the policy names, so a run
//! has at most one certificate per host of its policy.

use super::error::EgressError;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use time::{Duration, OffsetDateTime};
use wp_codebox_policy::Host;

/// The validity of a certificate starts this long before its creation: certificate times are whole
/// seconds, so the creation time could be rounded to a time in the future. Clock skew does not
/// matter: guest and host share one clock.
const BEFORE: Duration = Duration::hours(1);
/// How long after its creation a certificate expires; longer than any run lasts.
const AFTER: Duration = Duration::days(2);

/// Certificate authority of one run; its key signs a certificate for each host that the guest
/// contacts.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    hosts: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

impl Authority {
    /// Creates an authority: generates a key and a self-signed certificate.
    pub(super) fn new() -> Result<Self, EgressError> {
        let failed = |source| EgressError::Authority { source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("WP Codebox run authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid(&mut params);
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
            hosts: Mutex::default(),
        })
    }

    /// Returns the authority's certificate as PEM, for the guest's trust store.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the TLS configuration with which the bridge acts as the server `host` towards the
    /// guest.
    pub(super) fn server(&self, host: &Host) -> Result<Arc<ServerConfig>, EgressError> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Ok(Arc::clone(known));
        }
        let config = Arc::new(self.config(host)?);
        hosts.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn config(&self, host: &Host) -> Result<ServerConfig, EgressError> {
        let failed = |source| EgressError::Authority { source };
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        // A common name holds at most 64 bytes, so the host name is only in the subject alternative
        // name.
        params.distinguished_name = name("WP Codebox egress bridge");
        params.subject_alt_names = vec![match host.address() {
            Some(address) => SanType::IpAddress(address),
            None => SanType::DnsName(host.as_str().try_into().map_err(failed)?),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = |source| EgressError::Tls { source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(tls)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .map_err(tls)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn valid(params: &mut CertificateParams) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BEFORE;
    params.not_after = now + AFTER;
}

//! Address, account and trust of a connection to the server.

use crate::names::{NodeName, SubmitterName};
use async_nats::ServerAddr;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;
use wp_codebox_contracts::{CodedError, ServerUrl};
use zeroize::Zeroizing;

/// Why the options of a connection are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum OptionsError {
    /// The addresses cannot be used. The text does not repeat them.
    #[error("{problem}; an address is tls://HOST:PORT or, on this machine, nats://HOST:PORT")]
    #[code(InputInvalid)]
    Address {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The text of a credentials file has none of the known forms.
    #[error(
        "the credentials are neither an nkey seed of a user, nor the text of a .creds file, nor USER:PASSWORD in one line"
    )]
    #[code(SecretInvalid, hint = "write one of these into the credentials file")]
    Credentials,
    /// The certificates cannot be used.
    #[error("the CA certificates for the message server cannot be used: {detail}")]
    #[code(InputInvalid, hint = "name a file with certificates in PEM")]
    Authorities {
        /// Why they cannot be used.
        detail: String,
    },
}

/// The party for which a program connects. Its account has the rights that
/// [`permissions`](super::permissions) lists for this party.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    /// The person who creates streams and consumers.
    Operator,
    /// A host that runs tasks.
    Node(NodeName),
    /// A host that submits tasks.
    Submitter(SubmitterName),
}

impl Party {
    /// Returns the prefix of the subjects on which the party receives replies. Each party may
    /// subscribe only to its own, so it cannot read replies to others.
    #[must_use]
    pub fn inbox(&self) -> String {
        match self {
            Self::Operator => "_INBOX_operator".to_owned(),
            Self::Node(name) => format!("_INBOX_node_{name}"),
            Self::Submitter(name) => format!("_INBOX_submitter_{name}"),
        }
    }

    /// Returns the name that the server shows for connections of the party.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Operator => "wp-codebox operator".to_owned(),
            Self::Node(name) => format!("wp-codebox node {name}"),
            Self::Submitter(name) => format!("wp-codebox submitter {name}"),
        }
    }
}

/// How a program logs in. The value is a secret; `Debug` does not show it.
#[derive(Clone)]
pub enum Credentials {
    /// Seed of a user's nkey.
    Seed(Zeroizing<String>),
    /// Text of a `.creds` file: a user's JWT and seed.
    Creds(Zeroizing<String>),
    /// User name and password.
    Password {
        /// Name of the user.
        user: String,
        /// Password of the user.
        password: Zeroizing<String>,
    },
}

impl Credentials {
    /// Reads the text of a credentials file.
    ///
    /// # Errors
    /// [`OptionsError::Credentials`] if it has no known form. The error has no part of the text.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let line = text.trim();
        if line.contains("-----BEGIN NATS USER JWT-----") {
            return Ok(Self::Creds(Zeroizing::new(line.to_owned())));
        }
        let in_alphabet = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
        if line.len() == 58 && line.starts_with("SU") && line.bytes().all(in_alphabet) {
            return Ok(Self::Seed(Zeroizing::new(line.to_owned())));
        }
        match line.split_once(':') {
            Some((user, password))
                if !user.is_empty() && !password.is_empty() && !line.contains(char::is_control) =>
            {
                Ok(Self::Password {
                    user: user.to_owned(),
                    password: Zeroizing::new(password.to_owned()),
                })
            }
            Some(_) | None => Err(OptionsError::Credentials),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seed(_) => "Credentials::Seed",
            Self::Creds(_) => "Credentials::Creds",
            Self::Password { .. } => "Credentials::Password",
        })
    }
}

/// Options of a connection.
#[derive(Debug, Clone)]
pub struct NatsOptions {
    /// Addresses of one or more servers of the cluster.
    pub(super) servers: Vec<ServerAddr>,
    /// Their hosts and ports, for error texts.
    pub(super) shown: String,
    /// Party whose account is used.
    pub(super) party: Party,
    /// How to log in; `None` for a server without accounts.
    pub(super) credentials: Option<Credentials>,
    /// TLS settings; used if an address or the server asks for TLS.
    pub(super) tls: ClientConfig,
    /// Whether a connection without TLS fails.
    pub(super) tls_required: bool,
}

impl NatsOptions {
    /// Checks and combines the options. `authorities` is the PEM of the certificates to trust
    /// instead of the system's; with it, `nats://` addresses use TLS, too.
    ///
    /// # Errors
    /// [`OptionsError::Address`] without an address, or for an address of another machine without
    /// TLS: tasks and results would be readable on the way. [`OptionsError::Authorities`] if the
    /// certificates cannot be used.
    pub fn new(
        servers: Vec<ServerUrl>,
        party: Party,
        credentials: Option<Credentials>,
        authorities: Option<&[u8]>,
    ) -> Result<Self, OptionsError> {
        let tls_required = authorities.is_some() || servers.iter().any(ServerUrl::has_tls);
        let shown: Vec<String> = servers.iter().map(ServerUrl::authority).collect();
        let shown = shown.join(", ");
        if servers.is_empty() {
            let problem = "no address of a message server is given";
            return Err(OptionsError::Address { problem });
        }
        if !tls_required && servers.iter().any(|server| !server.is_local()) {
            let problem = "the message server is on another machine, so the connection needs TLS";
            return Err(OptionsError::Address { problem });
        }
        let servers: Vec<ServerAddr> = servers
            .iter()
            .map(|url| url.to_string().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| OptionsError::Address {
                problem: "the address of the message server cannot be parsed",
            })?;
        Ok(Self {
            shown,
            tls: client_config(authorities)?,
            servers,
            party,
            credentials,
            tls_required,
        })
    }
}

/// Returns TLS settings that trust these certificates, or the system's.
fn client_config(authorities: Option<&[u8]>) -> Result<ClientConfig, OptionsError> {
    let mut roots = RootCertStore::empty();
    let failed = |detail: String| OptionsError::Authorities { detail };
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                roots
                    .add(certificate)
                    .map_err(|error| failed(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(failed("there is no certificate in PEM".to_owned()));
            }
        }
        // No error if the machine has no certificates: it can use servers without TLS.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    const SEED: &str = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY";

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap()
    }

    #[test]
    fn address_of_another_machine_without_tls_is_refused() {
        let new = |text: &str| NatsOptions::new(vec![url(text)], Party::Operator, None, None);
        for text in [
            "nats://127.0.0.1",
            "nats://localhost",
            "nats://[::1]",
            "tls://10.0.0.1",
        ] {
            new(text).unwrap();
        }
        for text in ["nats://10.0.0.1", "nats://nats.example", "nats://0.0.0.0"] {
            new(text).unwrap_err();
        }
        assert!(NatsOptions::new(Vec::new(), Party::Operator, None, None).is_err());
    }

    #[test]
    fn credentials_are_a_seed_a_password_or_a_creds_file_and_are_not_in_debug_output_or_errors() {
        let parsed = |text: &str| Credentials::parse(text).unwrap();
        assert!(matches!(parsed(&format!("{SEED}\n")), Credentials::Seed(_)));
        assert!(matches!(parsed("shop:a:b"), Credentials::Password { .. }));
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\neyJ\n------END NATS USER JWT------\n-----BEGIN USER NKEY SEED-----\n{SEED}\n------END USER NKEY SEED------\n"
        );
        assert!(matches!(parsed(&creds), Credentials::Creds(_)));
        for credentials in [parsed(SEED), parsed("shop:SUsecret"), parsed(&creds)] {
            assert!(
                !format!("{credentials:?}").contains("SU"),
                "{credentials:?}"
            );
        }
        for wrong in [
            "",
            "secret",
            ":secret",
            "secret:",
            "a:secret\nb",
            &SEED[1..],
        ] {
            let error = Credentials::parse(wrong).unwrap_err();
            assert_eq!(error.code(), ErrorCode::SecretInvalid);
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn tls_authorities_without_a_valid_certificate_are_refused() {
        let new = |pem: &[u8]| {
            NatsOptions::new(
                vec![url("tls://10.0.0.1")],
                Party::Operator,
                None,
                Some(pem),
            )
        };
        new(b"no certificate").unwrap_err();
        new(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap_err();
    }

    #[test]
    fn inboxes_of_a_node_and_a_submitter_with_the_same_name_differ() {
        let node = Party::Node(NodeName::new("a").unwrap());
        let submitter = Party::Submitter(SubmitterName::new("a").unwrap());
        assert_ne!(node.inbox(), submitter.inbox());
        assert_ne!(node.inbox(), Party::Operator.inbox());
    }
}

//! Public keys, and the reasons why a host key cannot be used.

use crate::digest::sha256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use rustix::io::Errno;
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// Reason why the host key cannot be used.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(StateDirInvalid)]
pub enum KeyError {
    /// The key file could not be opened, read or created.
    #[error(
        "the host's signing key could not be {step}: {source}; check owner and free space of the state directory"
    )]
    Io {
        /// Failed operation: `opened`, `read` or `created`.
        step: &'static str,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
    /// A mount covers the directory of the key.
    #[error(
        "a mount covers keys/ in the state directory, so the host's signing key cannot be read; unmount it as root with `umount STATE_DIRECTORY/keys`. A run that root starts does so itself if an earlier version of WP Codebox left the mount there"
    )]
    Covered,
    /// The key file is not a regular file, has permissions for other users, or has more than one
    /// hard link.
    #[error(
        "keys/host.ed25519 must be a regular file of mode 0600 with one hard link; correct that, or remove the file if other users may have read it: WP Codebox then makes a new key"
    )]
    Exposed,
    /// The key file does not have 32 bytes.
    #[error(
        "keys/host.ed25519 does not have 32 bytes; remove it: WP Codebox then makes a new key, and bundles signed with the old key count as signed by an unknown key"
    )]
    Damaged,
    /// The host has no key yet.
    #[error(
        "this host has no signing key yet; WP Codebox makes it when it writes the first bundle or audit record"
    )]
    #[code(ConfigInvalid)]
    Missing,
    /// A file of an earlier public key does not contain the key whose id is its name.
    #[error(
        "keys/{name} does not contain the public key whose id is its name; restore it from a backup, or remove it: bundles signed with that key then count as signed by an unknown key"
    )]
    RetiredDamaged {
        /// Name of the file.
        name: String,
    },
    /// A public key is not 32 bytes in base64.
    #[error("a public key must be 32 bytes in base64, as `wp-codebox doctor` prints it")]
    #[code(InputInvalid)]
    PublicMalformed,
}

/// Ed25519 public key that verifies a host's signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the public key that belongs to a signing key.
    pub(super) fn of(key: &SigningKey) -> Self {
        Self(key.verifying_key().to_bytes())
    }

    /// Decodes a public key from base64.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        BASE64
            .decode(text.trim())
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or(KeyError::PublicMalformed)
    }
    /// Returns the key's 32 bytes in base64, as the command `doctor` prints them.
    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(self.0)
    }
    /// Returns the SHA-256 of the key's 32 bytes, which is the key id in an envelope.
    #[must_use]
    pub fn key_id(&self) -> Sha256Hex {
        sha256(&self.0)
    }
    /// Returns whether this key made the signature. Weak keys and non-canonical signatures are
    /// rejected.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let (Ok(key), Ok(signature)) = (
            VerifyingKey::from_bytes(&self.0),
            Signature::from_slice(signature),
        ) else {
            return false;
        };
        key.verify_strict(message, &signature).is_ok()
    }
}

/// Public keys by which a signature counts as trusted.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys {
    /// Public keys of this host: that of its signing key and earlier ones. Empty if the host has
    /// no key yet.
    pub host: Vec<PublicKey>,
    /// Ids ([`PublicKey::key_id`]) of the keys of other hosts, from the site's settings. An
    /// envelope contains its public key, so the id suffices to recognise the key.
    pub known: Vec<Sha256Hex>,
}

pub(super) const fn io(step: &'static str, source: Errno) -> KeyError {
    KeyError::Io { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the curve's neutral point as public key, this signature satisfies the plain equation of
    /// RFC 8032 for every message, although that public key has no private key.
    #[test]
    fn signature_under_a_key_of_small_order_is_rejected() {
        let (mut key, mut signature) = ([0; 32], [0; 64]);
        (key[0], signature[0]) = (1, 1);
        assert!(VerifyingKey::from_bytes(&key).is_ok());
        assert!(!PublicKey(key).verifies(b"a message", &signature));
    }
}

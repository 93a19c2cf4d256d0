//! The host's signing key, and the keys that a site trusts.
//!
//! The private key is stored in `keys/host.ed25519` of the state directory: 32 random bytes, mode
//! 0600, created once with O_EXCL, never logged, and wiped from memory on drop. A key file that
//! is a symbolic link, has several hard links, or is readable by other users is refused and not
//! repaired.

use crate::digest::sha256;
use crate::dirfd::Dir;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use rustix::fs::{self, AtFlags, RenameFlags};
use rustix::io::Errno;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex};
use zeroize::Zeroizing;

const DIRECTORY: &str = "keys";
const FILE: &str = "host.ed25519";

/// Reason why the host key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    Missing,
    /// A public key is not 32 bytes in base64.
    #[error("a public key must be 32 bytes in base64, as `wp-codebox doctor` prints it")]
    PublicMalformed,
}

impl KeyError {
    /// Returns the machine-readable code of this error, which later versions keep.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Io { .. } | Self::Covered | Self::Exposed | Self::Damaged => {
                ErrorCode::StateDirInvalid
            }
            Self::Missing => ErrorCode::ConfigInvalid,
            Self::PublicMalformed => ErrorCode::InputInvalid,
        }
    }
    /// Returns code and message of this error as the JSON body that callers receive.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

/// Ed25519 public key that verifies a host's signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
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
    /// Public key of this host; `None` if the host has no key yet.
    pub host: Option<PublicKey>,
    /// Ids ([`PublicKey::key_id`]) of the keys of other hosts, from the site's settings. An
    /// envelope contains its public key, so the id suffices to recognise the key.
    pub known: Vec<Sha256Hex>,
}

/// The host's signing key.
pub struct HostKey {
    key: SigningKey,
}

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostKey({})", self.public_half().key_id())
    }
}

impl HostKey {
    /// Loads the key from the state directory, and creates the key on first use.
    pub fn load_or_create(state_dir: &Dir) -> Result<Self, KeyError> {
        match Self::load(state_dir) {
            Err(KeyError::Missing) => {}
            result => return result,
        }
        let keys = state_dir
            .private_dir(DIRECTORY)
            .map_err(|source| io("created", source))?;
        create(&keys)?;
        // Another process may have created the key first; all processes use the key in the file.
        Self::load(state_dir)
    }

    /// Loads an existing key.
    pub fn load(state_dir: &Dir) -> Result<Self, KeyError> {
        let path = format!("{DIRECTORY}/{FILE}");
        let (file, stat) = match state_dir.open_file(path.as_bytes()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Err(KeyError::Missing),
            Err(Errno::LOOP | Errno::INVAL) => return Err(KeyError::Exposed),
            Err(Errno::XDEV) => return Err(KeyError::Covered),
            Err(source) => return Err(io("opened", source)),
        };
        if stat.st_mode & 0o077 != 0 || stat.st_nlink != 1 {
            return Err(KeyError::Exposed);
        }
        let mut seed = Zeroizing::new([0_u8; 32]);
        let read = rustix::io::read(&file, &mut seed[..]).map_err(|source| io("read", source))?;
        if read != seed.len() || stat.st_size != 32 {
            return Err(KeyError::Damaged);
        }
        Ok(Self {
            key: SigningKey::from_bytes(&seed),
        })
    }

    /// Returns the public key that belongs to this signing key.
    #[must_use]
    pub fn public_half(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

const fn io(step: &'static str, source: Errno) -> KeyError {
    KeyError::Io { step, source }
}

/// Writes 32 random bytes under a temporary name, then renames the file without replacing an
/// existing key, so a reader never sees a partial key.
fn create(keys: &Dir) -> Result<(), KeyError> {
    let mut random = Zeroizing::new([0_u8; 48]);
    getrandom::fill(random.as_mut_slice()).map_err(|_| io("created", Errno::AGAIN))?;
    let temporary = format!(".{FILE}.{}", sha256(&random[32..]));
    let file = keys
        .create(temporary.as_bytes())
        .map_err(|source| io("created", source))?;
    let written = rustix::io::write(&file, &random[..32]);
    let placed = match written {
        Ok(32) => fs::fsync(&file).and_then(|()| {
            fs::renameat_with(keys, temporary.as_str(), keys, FILE, RenameFlags::NOREPLACE)
        }),
        Ok(_) => Err(Errno::NOSPC),
        Err(error) => Err(error),
    };
    if let Err(error) = placed {
        // Another process may have created the key first; its key is used.
        let removed = fs::unlinkat(keys, temporary.as_str(), AtFlags::empty());
        if error != Errno::EXIST {
            return Err(io("created", error));
        }
        removed.map_err(|source| io("created", source))?;
    }
    fs::fsync(keys).map_err(|source| io("created", source))
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

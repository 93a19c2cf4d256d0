//! The host's signing key.
//!
//! The private key is stored in `keys/host.ed25519` of the state directory: 32 random bytes, mode
//! 0600, created once with O_EXCL, never logged, and wiped from memory on drop. A key file that
//! is a symbolic link, has several hard links, or is readable by other users is refused and not
//! repaired. A rotation replaces it.

use super::public_key::{KeyError, PublicKey, TrustedKeys, io};
use super::retired::{retire, retired};
use crate::digest::sha256;
use crate::dirfd::Dir;
use ed25519_dalek::{Signer, SigningKey};
use rustix::fs::{self, AtFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;
use wp_codebox_contracts::Sha256Hex;
use zeroize::Zeroizing;

const DIRECTORY: &str = "keys";
const FILE: &str = "host.ed25519";

/// The host's signing key, and the public keys of the signing keys that it replaced.
pub struct HostKey {
    key: SigningKey,
    retired: Vec<PublicKey>,
}

/// Result of a rotation.
#[derive(Debug)]
pub struct Rotated {
    /// Public key of the replaced signing key.
    pub old: PublicKey,
    /// The new signing key.
    pub key: HostKey,
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
        create(&keys, RenameFlags::NOREPLACE)?;
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
        let keys = state_dir.dir(DIRECTORY.as_bytes());
        let keys = keys.map_err(|source| io("opened", source))?;
        let key = SigningKey::from_bytes(&seed);
        // A rotation that was interrupted has stored the public key of a key that is still in use.
        let mut retired = retired(&keys)?;
        retired.retain(|one| *one != PublicKey::of(&key));
        Ok(Self { key, retired })
    }

    /// Replaces the signing key by a new one, and stores the public key of the old one, whose
    /// signatures stay trusted. Processes that loaded the old key before may sign with it once more.
    ///
    /// # Errors
    /// [`KeyError::Missing`] if there is no key yet, or another [`KeyError`]; the old key is then
    /// still in use, except after an I/O error of the last `fsync`.
    pub fn rotate(state_dir: &Dir) -> Result<Rotated, KeyError> {
        let failed = |source| io("created", source);
        let keys = match state_dir.dir(DIRECTORY.as_bytes()) {
            Err(Errno::NOENT) => return Err(KeyError::Missing),
            keys => keys.map_err(|source| io("opened", source))?,
        };
        // Of two rotations at once, the second must retire the key that the first one made.
        fs::flock(&keys, FlockOperation::LockExclusive).map_err(failed)?;
        let old = Self::load(state_dir)?.public_half();
        retire(&keys, &old).map_err(failed)?;
        create(&keys, RenameFlags::empty())?;
        let key = Self::load(state_dir)?;
        Ok(Rotated { old, key })
    }

    /// Returns the public key that belongs to this signing key.
    #[must_use]
    pub fn public_half(&self) -> PublicKey {
        PublicKey::of(&self.key)
    }

    /// Returns the keys that verify this host's signatures: the present one and those it replaced.
    #[must_use]
    pub fn public_keys(&self) -> Vec<PublicKey> {
        let earlier = self.retired.iter().copied();
        std::iter::once(self.public_half()).chain(earlier).collect()
    }

    /// Returns the keys of this host and the `known` keys of other hosts as the trusted ones.
    #[must_use]
    pub fn trusted(&self, known: Vec<Sha256Hex>) -> TrustedKeys {
        TrustedKeys {
            host: self.public_keys(),
            known,
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

/// Writes 32 random bytes under a temporary name, then renames the file, so a reader never sees a
/// partial key. With [`RenameFlags::NOREPLACE`] an existing key stays.
fn create(keys: &Dir, rename: RenameFlags) -> Result<(), KeyError> {
    let mut random = Zeroizing::new([0_u8; 48]);
    getrandom::fill(random.as_mut_slice()).map_err(|_| io("created", Errno::AGAIN))?;
    let temporary = format!(".{FILE}.{}", sha256(&random[32..]));
    let file = keys
        .create(temporary.as_bytes())
        .map_err(|source| io("created", source))?;
    let written = rustix::io::write(&file, &random[..32]);
    let placed = match written {
        Ok(32) => fs::fsync(&file)
            .and_then(|()| fs::renameat_with(keys, temporary.as_str(), keys, FILE, rename)),
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
    use std::fs;

    #[test]
    fn rotation_keeps_the_public_keys_of_all_earlier_keys() {
        let temp = tempfile::tempdir().unwrap();
        let state = Dir::open(temp.path()).unwrap();
        assert!(matches!(HostKey::rotate(&state), Err(KeyError::Missing)));
        let first = HostKey::load_or_create(&state).unwrap();
        assert_eq!(first.public_keys(), [first.public_half()]);
        let second = HostKey::rotate(&state).unwrap();
        assert_eq!(second.old, first.public_half());
        let third = HostKey::rotate(&state).unwrap().key;
        let mut earlier = [first.public_half(), second.key.public_half()];
        earlier.sort_by_key(PublicKey::key_id);
        assert_eq!(third.public_keys()[0], third.public_half());
        assert_eq!(third.public_keys()[1..], earlier);
        let signature = first.sign(b"a message");
        let verifies = |key: &&PublicKey| key.verifies(b"a message", &signature);
        assert_eq!(third.public_keys().iter().filter(verifies).count(), 1);
        // As after a rotation that was killed before it made a new key.
        retire(&state.dir(b"keys").unwrap(), &third.public_half()).unwrap();
        assert_eq!(HostKey::load(&state).unwrap().public_keys().len(), 3);
        // Without the file of the first key, that key is no key of this host any more.
        let file = format!("keys/{}.pub", first.public_half().key_id());
        fs::remove_file(temp.path().join(file)).unwrap();
        let keys = HostKey::load(&state).unwrap().public_keys();
        assert!(!keys.contains(&first.public_half()) && keys.len() == 2);
    }

    #[test]
    fn file_of_an_earlier_key_with_other_content_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let state = Dir::open(temp.path()).unwrap();
        let first = HostKey::load_or_create(&state).unwrap().public_half();
        let other = HostKey::rotate(&state).unwrap().key.public_half();
        let file = temp.path().join(format!("keys/{}.pub", first.key_id()));
        let good = fs::read(&file).unwrap();
        let other = format!("{}\n", other.to_base64());
        for bad in [
            b"" as &[u8],
            &good[..20],
            other.as_bytes(),
            &[0xff; 44],
            &[b'A'; 65],
        ] {
            fs::write(&file, bad).unwrap();
            let error = HostKey::load(&state).unwrap_err();
            assert!(
                matches!(error, KeyError::RetiredDamaged { .. }),
                "{bad:?}: {error}"
            );
        }
        fs::write(&file, good).unwrap();
        HostKey::load(&state).unwrap();
    }

    #[test]
    fn rotations_at_the_same_time_lose_no_key() {
        let temp = tempfile::tempdir().unwrap();
        let state = Dir::open(temp.path()).unwrap();
        let first = HostKey::load_or_create(&state).unwrap().public_half();
        let mut all = std::thread::scope(|scope| {
            let rotate = || {
                let state = Dir::open(temp.path()).unwrap();
                HostKey::rotate(&state).unwrap().key.public_half()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(rotate)).collect();
            let made = threads.into_iter().map(|thread| thread.join().unwrap());
            made.chain([first]).collect::<Vec<_>>()
        });
        let mut kept = HostKey::load(&state).unwrap().public_keys();
        all.sort();
        kept.sort();
        assert_eq!(kept, all);
    }
}

//! Public keys of replaced signing keys.
//!
//! `keys/<key id>.pub` in the state directory has the public key in base64. It is written before the
//! new key replaces the old one, so a rotation that is interrupted at any point leaves a host key and
//! all public keys. Removing the file ends the trust in that key.

use super::public_key::{KeyError, PublicKey, io};
use crate::dirfd::{Dir, write_all};
use rustix::fs::{self, AtFlags};
use rustix::io::Errno;
use wp_codebox_contracts::Sha256Hex;

/// End of the name of a file with the public key of a replaced signing key.
const SUFFIX: &str = ".pub";
/// Maximum size of such a file in bytes; one has 45.
const LARGEST: u64 = 64;

/// Stores the public key of a signing key that is about to be replaced.
pub(super) fn retire(keys: &Dir, key: &PublicKey) -> Result<(), Errno> {
    let name = format!("{}{SUFFIX}", key.key_id());
    let temporary = format!(".{name}");
    // A rotation that was killed may have left this file.
    match fs::unlinkat(keys, temporary.as_str(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    let file = keys.create(temporary.as_bytes())?;
    write_all(&file, format!("{}\n", key.to_base64()).as_bytes())?;
    fs::fsync(&file)?;
    fs::renameat(keys, temporary.as_str(), keys, name.as_str())?;
    fs::fsync(keys)
}

/// Reads the public keys of replaced signing keys from the directory `keys`, sorted by key id.
pub(super) fn retired(keys: &Dir) -> Result<Vec<PublicKey>, KeyError> {
    let failed = |source| io("read", source);
    let mut retired = Vec::new();
    for name in keys.names().map_err(failed)? {
        let Some(id) = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| name.strip_suffix(SUFFIX))
            .filter(|id| !id.starts_with('.'))
        else {
            continue;
        };
        let path = format!("{id}{SUFFIX}");
        let damaged = || KeyError::RetiredDamaged { name: path.clone() };
        let bytes = match keys.file_bytes(&path, LARGEST) {
            Err(Errno::FBIG | Errno::LOOP | Errno::INVAL) => return Err(damaged()),
            bytes => bytes.map_err(failed)?,
        };
        let text = String::from_utf8(bytes).map_err(|_| damaged())?;
        let key = PublicKey::from_base64(&text).map_err(|_| damaged())?;
        if Sha256Hex::new(id).ok() != Some(key.key_id()) {
            return Err(damaged());
        }
        retired.push(key);
    }
    Ok(retired)
}

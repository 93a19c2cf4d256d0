//! Uploads the layers of a submitter.
//!
//! A layer that the server has already is neither compressed nor sent. A directory whose entries have
//! the same names, inodes, sizes and times as at the last call of this process is not read either,
//! so a batch of tasks over one directory reads it once. (The supervisor judges by the same facts
//! whether a mount's source changed during a run.)
//!
//! Order of a submission, which [`crate::collect::Collector`] relies on: layers, task document, record,
//! [`LayerStore::confirm`], message; and [`LayerStore::confirm`] once more when
//! [`crate::collect::REMOVAL_WINDOW`] has passed, unless the run has ended by then.

use super::error::LayerError;
use super::pack::{Layer, pack, pack_files, pack_to, unreadable};
use super::remembered::{Remembered, Seen};
use super::rules::PackRules;
use crate::bus::ObjectName;
use crate::objects::Objects;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::Sha256Hex;

/// Maximum number of directories whose digest is remembered.
const REMEMBERED: usize = 256;

/// An uploaded layer with its source, which stays open so that the layer can be uploaded again.
#[derive(Debug)]
pub struct LayerInput {
    /// Digest of the layer.
    pub digest: Sha256Hex,
    /// What the layer was packed from.
    pub from: LayerSource,
}

/// What a layer is packed from.
#[derive(Debug)]
pub enum LayerSource {
    /// A directory.
    Directory {
        /// The open directory.
        root: OwnedFd,
        /// Which of its entries the layer contains.
        rules: PackRules,
    },
    /// Single files under names in ascending order.
    Files(Vec<(String, File)>),
}

/// Packs and uploads layers, and remembers the digests of unchanged directories.
#[derive(Debug)]
pub struct LayerStore {
    temporary: PathBuf,
    known: Mutex<BTreeMap<Seen, Sha256Hex>>,
    remembered: Option<Remembered>,
}

impl LayerStore {
    /// Creates a store that compresses layers in unnamed files below `temporary`.
    #[must_use]
    pub fn new(temporary: &Path) -> Self {
        Self {
            temporary: temporary.to_owned(),
            known: Mutex::new(BTreeMap::new()),
            remembered: None,
        }
    }

    /// Creates a store that also remembers digests for later processes, in this directory, which is
    /// created if it is missing. No other user may write there.
    #[must_use]
    pub fn remembering(temporary: &Path, directory: &Path) -> Self {
        Self {
            remembered: Some(Remembered::at(directory)),
            ..Self::new(temporary)
        }
    }

    /// Uploads the layer of a directory unless the server has it, and returns its digest.
    ///
    /// # Errors
    /// [`LayerError`] about the directory, the temporary file or the server.
    pub fn put_missing(
        &self,
        objects: &dyn Objects,
        root: BorrowedFd<'_>,
        rules: &PackRules,
    ) -> Result<Sha256Hex, LayerError> {
        let before = self.seen(root, rules)?;
        let known = before.as_ref().and_then(|seen| {
            let remembered = || self.remembered.as_ref()?.digest(seen);
            self.known().get(seen).cloned().or_else(remembered)
        });
        let is_known = known.is_some();
        let digest = match known {
            Some(digest) => digest,
            None => pack_to(root, rules, std::io::sink())?.digest,
        };
        let digest = if objects.has(&ObjectName::Layer(digest.clone()))? {
            digest
        } else {
            let layer = pack(root, rules, &self.temporary)?;
            let digest = layer.packed.digest.clone();
            put(objects, layer)?;
            digest
        };
        // The digest is valid only if the directory did not change while its files were read.
        if let (Some(before), Some(after)) = (before, self.seen(root, rules)?)
            && before == after
        {
            // Only a digest that was computed in this call is noted, not one from memory.
            if let Some(remembered) = self.remembered.as_ref().filter(|_| !is_known) {
                remembered.note(&after, &digest);
            }
            let mut known = self.known();
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(after, digest.clone());
        }
        Ok(digest)
    }

    /// Uploads single files as one layer, under names in ascending order, and returns its digest.
    ///
    /// # Errors
    /// As [`LayerStore::put_missing`].
    pub fn put_files(
        &self,
        objects: &dyn Objects,
        files: &mut [(String, File)],
    ) -> Result<Sha256Hex, LayerError> {
        let layer = pack_files(files, &self.temporary)?;
        let digest = layer.packed.digest.clone();
        if !objects.has(&ObjectName::Layer(digest.clone()))? {
            put(objects, layer)?;
        }
        Ok(digest)
    }

    /// Uploads a layer again if the server no longer has it, and returns whether it uploaded. A
    /// directory that changed has another digest by now. Its earlier layer stays missing, and the run
    /// ends on its node with an error.
    ///
    /// # Errors
    /// As [`LayerStore::put_missing`].
    pub fn confirm(
        &self,
        objects: &dyn Objects,
        input: &mut LayerInput,
    ) -> Result<bool, LayerError> {
        let name = ObjectName::Layer(input.digest.clone());
        if objects.has(&name)? {
            return Ok(false);
        }
        let layer = match &mut input.from {
            LayerSource::Directory { root, rules } => pack(root.as_fd(), rules, &self.temporary)?,
            LayerSource::Files(files) => pack_files(files, &self.temporary)?,
        };
        put(objects, layer)?;
        Ok(true)
    }

    fn seen(&self, root: BorrowedFd<'_>, rules: &PackRules) -> Result<Option<Seen>, LayerError> {
        let stat = rustix::fs::fstat(root).map_err(|e| unreadable(b"", e))?;
        let fingerprint = rules.fingerprint(root);
        Ok(fingerprint.map(|fingerprint| ((stat.st_dev, stat.st_ino), fingerprint)))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Seen, Sha256Hex>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(objects: &dyn Objects, mut layer: Layer) -> Result<(), LayerError> {
    let name = ObjectName::Layer(layer.packed.digest.clone());
    Ok(objects.put(&name, &mut layer.file)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::MemoryObjects;
    use wp_codebox_artifacts::{Dir, sha256};

    #[test]
    fn unchanged_directory_is_not_read_again_and_a_changed_one_is() {
        let (work, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(work.path().join("f"), "one").unwrap();
        let root = Dir::open(work.path()).unwrap();
        let (objects, rules) = (MemoryObjects::default(), PackRules::whole());
        let store = LayerStore::new(temporary.path());
        let put = || store.put_missing(&objects, root.as_fd(), &rules).unwrap();
        let first = put();
        // Only a digest that comes from memory can be this one.
        let remembered = sha256(b"remembered");
        for digest in store.known().values_mut() {
            *digest = remembered.clone();
        }
        let name = ObjectName::Layer(remembered.clone());
        objects.put(&name, &mut &b""[..]).unwrap();
        assert_eq!(put(), remembered);
        std::fs::write(work.path().join("g"), "two").unwrap();
        let second = put();
        assert!(second != first && second != remembered);
        // Directories with parts left out are read each time.
        let without = PackRules::without(&["g".to_owned()]);
        let digest = store.put_missing(&objects, root.as_fd(), &without).unwrap();
        assert_eq!(digest, first);
    }
}

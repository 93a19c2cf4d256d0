//! The new contents of approved files as a zip archive. Equal bundles with equal approved files
//! give equal archives.
//!
//! The archive is made here and not by PHP, because PHP's zip module is optional. The archive has
//! no links: an unpacking program that follows a link could write a later file outside its target
//! directory.

use crate::bundle::percent_encode;
use crate::changed_files::raw_relative;
use crate::digest::sha256;
use crate::dirfd::{Dir, ReadOutcome};
use crate::patch::{apply_block, parse_patch};
use crate::preflight::{MountPatch, Preflight};
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use wp_codebox_contracts::{ChangeKind, ChangedFile, CodedError};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Name of the text file in the archive that lists deleted files, links and new directories, which
/// the archive does not contain.
const LIST: &str = "codebox-deleted-files.txt";

/// Reason why no zip archive of the approved files could be made.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum DownloadError {
    /// The bundle has no copy of a changed file, e.g. because the file is too large.
    #[error("the bundle has no complete copy of {path:?}; download the patch instead")]
    #[code(ArtifactTooLarge)]
    NoCopy {
        /// Path of the file, as in `changed-files.json`.
        path: String,
    },
    /// A zip archive cannot have a file of this name.
    #[error("a zip archive cannot contain a file named {path:?}; download the patch instead")]
    #[code(ArtifactExportFailed)]
    Name {
        /// Path of the file, as in `changed-files.json`.
        path: String,
    },
    /// The contents or the archive exceed the caller's limit.
    #[error("the download exceeds the limit of {most} bytes; choose fewer files")]
    #[code(ArtifactTooLarge)]
    TooLarge {
        /// The exceeded limit in bytes.
        most: u64,
    },
    /// The archive could not be written.
    #[error("the archive could not be written: {source}")]
    #[code(ArtifactExportFailed)]
    Write {
        /// Error of the archive writer.
        #[from]
        source: zip::result::ZipError,
    },
}

impl Preflight {
    /// Returns the new contents of the approved files as a zip archive of at most `most` bytes.
    /// `bundle` is the directory of the same bundle. If all files are of one mount, they are in a
    /// directory named after the last component of the mount's guest path, otherwise below the
    /// whole guest paths of their mounts. A text file lists deleted files, links and new
    /// directories.
    pub fn zip(&self, bundle: &Dir, most: u64) -> Result<Vec<u8>, DownloadError> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default());
        let mut total = 0;
        let mut add = |name: &str, mode: u32, bytes: &[u8]| {
            total += bytes.len() as u64;
            if total > most {
                return Err(DownloadError::TooLarge { most });
            }
            writer.start_file(name, options.unix_permissions(mode))?;
            let written = writer.write_all(bytes);
            Ok(written.map_err(zip::result::ZipError::from)?)
        };
        let mut listed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for entry in &self.changed_files {
            let name = self.member_name(entry)?;
            match (entry.status, entry.after_mode.as_deref()) {
                (ChangeKind::Deleted, _) => listed.entry("Deleted").or_default().push(name),
                (_, Some("120000")) => listed.entry("Symbolic links").or_default().push(name),
                (_, Some("040000")) => listed.entry("New directories").or_default().push(name),
                (_, mode) => {
                    let mode = if mode == Some("100755") { 0o755 } else { 0o644 };
                    add(&name, mode, &self.contents(bundle, entry)?)?;
                }
            }
        }
        if !listed.is_empty() {
            let mut text = "This archive has the new and changed files only.\n".to_owned();
            for (kind, names) in listed {
                text.push_str(&format!("\n{kind}:\n{}\n", names.join("\n")));
            }
            add(LIST, 0o644, text.as_bytes())?;
        }
        let bytes = writer.finish()?.into_inner();
        match bytes.len() as u64 > most {
            true => Err(DownloadError::TooLarge { most }),
            false => Ok(bytes),
        }
    }

    /// Returns the name of a file in the archive.
    fn member_name(&self, entry: &ChangedFile) -> Result<String, DownloadError> {
        let refused = || DownloadError::Name {
            path: entry.path.clone(),
        };
        let relative = String::from_utf8(raw_relative(entry)).map_err(|_| refused())?;
        let mount = entry.mount_target.as_str().trim_start_matches('/');
        let top = match self.mount_patches.len() {
            0 | 1 => mount.rsplit('/').next().unwrap_or(mount),
            _ => mount,
        };
        let name = format!("{top}/{relative}");
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        // Windows reads a backslash as a separator and a colon as the end of a drive's name.
        match name.split('/').all(is_plain) && !name.contains(['\\', ':', '\0']) {
            true => Ok(name),
            false => Err(refused()),
        }
    }

    /// Returns the contents of a file after the change: from the copy in the bundle or, if there is
    /// none and the file is new, from the patch.
    fn contents(&self, bundle: &Dir, entry: &ChangedFile) -> Result<Vec<u8>, DownloadError> {
        let path = raw_relative(entry);
        let copy = format!(
            "files/mounts/{}/{}",
            entry.mount_index,
            percent_encode(&path)
        );
        let is_right = |bytes: &[u8]| Some(sha256(bytes)) == entry.after_sha256;
        if let Ok((ReadOutcome::Bytes(bytes), _)) = bundle.read(copy.as_bytes(), 1 << 30)
            && is_right(&bytes)
        {
            return Ok(bytes);
        }
        let mut patches = self.mount_patches.iter();
        let patch = patches.find(|patch| patch.mount_index == entry.mount_index);
        let made = patch.and_then(|patch| new_file(patch, &path));
        made.filter(|bytes| is_right(bytes))
            .ok_or_else(|| DownloadError::NoCopy {
                path: entry.path.clone(),
            })
    }
}

/// Returns the contents of the file `path` if the patch adds it; `None` if the patch changes or
/// renames an existing file.
fn new_file(patch: &MountPatch, path: &[u8]) -> Option<Vec<u8>> {
    let bytes = patch.patch.as_bytes();
    let blocks = parse_patch(bytes).ok()?;
    let mut blocks = blocks.iter();
    let block = blocks.rfind(|block| block.new_name.as_deref() == Some(path))?;
    match block.old_name {
        None => apply_block(bytes, block, &[]).ok(),
        Some(_) => None,
    }
}

//! Zip archives: listing without unpacking, and unpacking with size limits.
//!
//! The archive's own metadata is not trusted: names, file types and sizes are checked before
//! anything is written, and bytes are counted again while unpacking.

use super::write::write;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use wp_codebox_recipe::{
    ArchiveError, MAX_UNPACKED_BYTES, ZipEntry, ZipKind, ZipUnreadable, check_archive,
};

/// Maximum size of an archive, in bytes. The archive is in memory while it is listed.
const PACKED_BYTES: u64 = 64 * 1024 * 1024;
/// Number of bytes at the beginning of a file in which WordPress searches for a plugin header.
const HEADER_BYTES: u64 = 8 * 1024;
/// Mask of the file type bits (`S_IFMT`).
const KIND: u32 = 0o170_000;

/// Why an archive is not unpacked. Callers print the message after the mount's name and a colon.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the archive cannot be read: {0}")]
    Unreadable(#[from] ZipUnreadable),
    #[error("the archive cannot be used: {0}")]
    Archive(#[from] ArchiveError),
    #[error(
        "the archive does not have the requested sha256, so it may have changed; correct `sha256` or the file"
    )]
    Digest,
    #[error(
        "the archive does not contain the requested directory {subdir:?}; name one that it contains"
    )]
    Subdir { subdir: String },
    #[error("the archive cannot be unpacked: {0}; check free space of the state directory")]
    Write(#[from] std::io::Error),
}

impl Refused {
    pub(super) fn body(&self, of: &str) -> ErrorBody {
        let code = match self {
            Refused::Unreadable(_)
            | Refused::Archive(_)
            | Refused::Digest
            | Refused::Subdir { .. } => ErrorCode::MountSourceInvalid,
            Refused::Write(_) => ErrorCode::SandboxStartFailed,
        };
        ErrorBody::new(code, format!("{of}: {self}"))
    }
}

type Archive = zip::ZipArchive<Cursor<Vec<u8>>>;

fn unreadable(reason: impl ToString) -> ZipUnreadable {
    ZipUnreadable {
        reason: reason.to_string(),
    }
}

/// A zip archive and its list of entries.
pub struct Listed {
    pub entries: Vec<ZipEntry>,
    archive: Archive,
    /// SHA-256 of the archive in lowercase hex.
    pub sha256: String,
}

/// Reads the central directory of an archive without unpacking it.
pub fn list(file: File) -> Result<Listed, ZipUnreadable> {
    let mut bytes = Vec::new();
    file.take(PACKED_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > PACKED_BYTES {
        return Err(unreadable(format!(
            "it is larger than {PACKED_BYTES} bytes; unpack it and name its directory"
        )));
    }
    let sha256 = hex(&Sha256::digest(&bytes));
    let declared = declared(&bytes);
    let mut archive = Archive::new(Cursor::new(bytes)).map_err(unreadable)?;
    // The zip reader keeps only one of several entries with the same name, so a different count
    // reveals duplicate names.
    if declared.is_some_and(|count| count != archive.len()) {
        return Err(unreadable(
            "its entries differ from its central directory: a name occurs twice",
        ));
    }
    let entries = (0..archive.len())
        .map(|index| {
            let entry = archive.by_index_raw(index).map_err(unreadable)?;
            let name = std::str::from_utf8(entry.name_raw())
                .map_err(|_| unreadable("a name in it is not UTF-8"))?
                .to_owned();
            if entry.encrypted() {
                return Err(unreadable("it is encrypted"));
            }
            let plain = entry
                .unix_mode()
                .is_none_or(|mode| matches!(mode & KIND, 0 | 0o100_000 | 0o040_000));
            Ok(ZipEntry {
                name,
                size: entry.size(),
                special: if plain {
                    ZipKind::Plain
                } else {
                    ZipKind::Special
                },
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Listed {
        entries,
        archive,
        sha256,
    })
}

/// Returns the number of entries that the end-of-central-directory record states; `None` if there
/// is no such record, and for a zip64 archive.
fn declared(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().saturating_sub(22 + 65_536);
    let at = bytes[from..].windows(4).rposition(|w| w == b"PK\x05\x06")? + from;
    let count = u16::from_le_bytes(bytes.get(at + 10..at + 12)?.try_into().ok()?);
    (count != u16::MAX).then_some(usize::from(count))
}

impl Listed {
    /// Returns the top-level directory that contains all entries, with a trailing slash; an empty
    /// text if there is none.
    pub fn top(&self) -> String {
        let first = self.entries.first().and_then(|e| e.name.split_once('/'));
        match first {
            Some((top, _)) => {
                let top = format!("{top}/");
                let all = self.entries.iter().all(|e| e.name.starts_with(&top));
                if all { top } else { String::new() }
            }
            None => String::new(),
        }
    }

    /// Returns the part of each PHP file that can contain a plugin header, by file name; only files
    /// directly below the directory `prefix`.
    pub fn heads(&mut self, prefix: &str) -> BTreeMap<String, String> {
        let mut heads = BTreeMap::new();
        for index in 0..self.archive.len() {
            let Ok(entry) = self.archive.by_index(index) else {
                continue;
            };
            let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
            let Some(rest) = name.strip_prefix(prefix) else {
                continue;
            };
            if rest.contains('/') || !rest.ends_with(".php") {
                continue;
            }
            let mut head = Vec::new();
            if entry.take(HEADER_BYTES).read_to_end(&mut head).is_ok() {
                heads.insert(rest.to_owned(), String::from_utf8_lossy(&head).into_owned());
            }
        }
        heads
    }
}

/// Finds the main file of a plugin, which must have a plugin header: `<slug>.php`, otherwise
/// `plugin.php`, otherwise the only file with a header.
pub fn plugin_header(heads: &BTreeMap<String, String>, slug: &str) -> Option<String> {
    let headed = |name: &String| heads.get(name).is_some_and(|t| t.contains("Plugin Name:"));
    let usual = [format!("{slug}.php"), "plugin.php".to_owned()];
    if let Some(name) = usual.into_iter().find(headed) {
        return Some(name);
    }
    let mut others = heads.keys().filter(|name| headed(name));
    match (others.next(), others.next()) {
        (Some(name), None) => Some(name.clone()),
        (None, _) | (Some(_), Some(_)) => None,
    }
}

/// Unpacks an archive, or one directory of it, into an empty directory of the run.
pub(super) fn unpack(
    file: File,
    sha256: Option<&str>,
    subdir: Option<&str>,
    into: &Path,
) -> Result<(), Refused> {
    unpack_within(file, sha256, subdir, into, MAX_UNPACKED_BYTES)
}

fn unpack_within(
    file: File,
    sha256: Option<&str>,
    subdir: Option<&str>,
    into: &Path,
    most: u64,
) -> Result<(), Refused> {
    let mut listed = list(file)?;
    if sha256.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&listed.sha256)) {
        return Err(Refused::Digest);
    }
    check_archive(&listed.entries)?;
    let prefix = match subdir {
        Some(subdir) => {
            let below = format!("{subdir}/");
            let top = listed.top();
            // `subdir` may be relative to the archive's root or to its only top-level directory.
            [below.clone(), format!("{top}{below}")]
                .into_iter()
                .find(|p| listed.entries.iter().any(|e| e.name.starts_with(p)))
                .ok_or_else(|| Refused::Subdir {
                    subdir: subdir.to_owned(),
                })?
        }
        None => listed.top(),
    };
    let mut left = most;
    for index in 0..listed.archive.len() {
        let entry = listed.archive.by_index(index).map_err(unreadable)?;
        let name = listed.entries[index].name.clone();
        let Some(rest) = name.strip_prefix(&prefix).filter(|rest| !rest.is_empty()) else {
            continue;
        };
        if rest.ends_with('/') {
            std::fs::create_dir_all(into.join(rest))?;
            continue;
        }
        let mut bytes = Vec::new();
        // Reads one byte more than allowed: a zip bomb then differs from an archive of exactly the
        // maximum size.
        entry
            .take(left + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or(ArchiveError::Bytes)?;
        write(into, rest, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::write::SimpleFileOptions;

    fn packed(rows: &[(&str, &[u8], u32)]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes, mode) in rows {
            let options = SimpleFileOptions::default().unix_permissions(*mode & 0o777);
            if mode & KIND == 0o120_000 {
                let target = std::str::from_utf8(bytes).unwrap();
                writer.add_symlink(*name, target, options).unwrap();
            } else {
                writer.start_file(*name, options).unwrap();
                writer.write_all(bytes).unwrap();
            }
        }
        file.write_all(&writer.finish().unwrap().into_inner())
            .unwrap();
        file
    }

    fn unpacked(rows: &[(&str, &[u8], u32)]) -> (Result<(), Refused>, tempfile::TempDir) {
        let archive = packed(rows);
        let into = tempfile::tempdir().unwrap();
        let file = File::open(archive.path()).unwrap();
        (unpack(file, None, None, into.path()), into)
    }

    #[test]
    fn single_top_level_directory_of_an_archive_is_stripped_when_unpacking() {
        let (answer, into) = unpacked(&[
            ("shop/shop.php", b"<?php /* Plugin Name: Shop */", 0o644),
            ("shop/lib/a.php", b"<?php", 0o644),
        ]);
        answer.unwrap();
        assert!(into.path().join("shop.php").is_file());
        assert!(into.path().join("lib/a.php").is_file());
        let (answer, into) = unpacked(&[("shop.php", b"<?php", 0o644)]);
        answer.unwrap();
        assert!(into.path().join("shop.php").is_file());
    }

    #[test]
    fn archive_with_unsafe_path_link_or_names_differing_only_in_case_is_refused_and_not_unpacked() {
        let ok: (&str, &[u8], u32) = ("a.php", b"<?php", 0o644);
        for bad in [
            ("../out.php", &b"x"[..], 0o644),
            ("a/../../out.php", b"x", 0o644),
            ("/tmp/out.php", b"x", 0o644),
            ("link.php", b"/etc/passwd", 0o120_777),
            ("A.PHP", b"x", 0o644),
        ] {
            let (answer, into) = unpacked(&[ok, bad]);
            assert!(matches!(answer, Err(Refused::Archive(_))), "{bad:?}");
            assert_eq!(
                std::fs::read_dir(into.path()).unwrap().count(),
                0,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn zip_bomb_is_refused_by_its_unpacked_size() {
        let zeros = vec![0; 1000];
        let rows: [(&str, &[u8], u32); 2] = [("a", &zeros, 0o644), ("b", &zeros, 0o644)];
        let archive = packed(&rows);
        let unpacked = |most| {
            let into = tempfile::tempdir().unwrap();
            let file = File::open(archive.path()).unwrap();
            unpack_within(file, None, None, into.path(), most)
        };
        unpacked(2000).unwrap();
        assert!(matches!(
            unpacked(1999),
            Err(Refused::Archive(ArchiveError::Bytes))
        ));
        // The same archive with forged, small entry sizes.
        let mut bytes = std::fs::read(archive.path()).unwrap();
        let mut at = 0;
        while let Some(found) = bytes[at..].windows(4).position(|w| w == b"PK\x01\x02") {
            at += found;
            bytes[at + 24..at + 28].copy_from_slice(&1u32.to_le_bytes());
            at += 4;
        }
        std::fs::write(archive.path(), bytes).unwrap();
        assert!(
            unpacked(1999).is_err(),
            "an archive with false sizes is refused"
        );
    }

    /// Returns the archive with every `from` replaced by `to`.
    fn forged(archive: &tempfile::NamedTempFile, from: &[u8], to: &[u8]) -> File {
        let mut bytes = std::fs::read(archive.path()).unwrap();
        let at = |bytes: &[u8]| bytes.windows(from.len()).position(|w| w == from);
        while let Some(at) = at(&bytes) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        file
    }

    #[test]
    fn archive_with_duplicate_names_or_encrypted_entries_is_refused() {
        let archive = packed(&[("a.php", b"1", 0o644), ("b.php", b"2", 0o644)]);
        let listed = |from: &[u8], to: &[u8]| list(forged(&archive, from, to)).map(drop);
        listed(b"b.php", b"c.php").unwrap();
        let twice = listed(b"b.php", b"a.php").unwrap_err();
        assert!(twice.reason.contains("twice"), "{twice}");
        // Sets the encryption flag of the first entry in the central directory.
        let mut bytes = std::fs::read(archive.path()).unwrap();
        let at = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        bytes[at + 8] |= 1;
        std::fs::write(archive.path(), bytes).unwrap();
        let encrypted = list(File::open(archive.path()).unwrap())
            .map(drop)
            .unwrap_err();
        assert!(encrypted.reason.contains("encrypted"), "{encrypted}");
    }

    #[test]
    fn archive_with_wrong_digest_or_missing_subdirectory_is_refused() {
        let archive = packed(&[
            ("top/one/a.php", b"1", 0o644),
            ("top/two/b.php", b"2", 0o644),
        ]);
        let open = || File::open(archive.path()).unwrap();
        let sha256 = list(open()).unwrap().sha256;
        let into = tempfile::tempdir().unwrap();
        unpack(open(), Some(&sha256), Some("two"), into.path()).unwrap();
        assert!(into.path().join("b.php").is_file());
        assert!(!into.path().join("one").exists());
        let other = "0".repeat(64);
        let refused = unpack(open(), Some(&other), None, into.path());
        assert!(matches!(refused, Err(Refused::Digest)));
        let refused = unpack(open(), None, Some("three"), into.path());
        assert!(matches!(refused, Err(Refused::Subdir { .. })));
    }
}

//! Parser for the entries of a tar archive.
//!
//! A name that does not fit into a member's header is stored in an entry before the member: GNU
//! `L`, or PAX `x` with records. The tar crate would read such entries completely, whatever size
//! they declare, so this module requests raw entries and reads them with limits. Archives that
//! two readers could interpret differently (two such entries for a member, a second size) are
//! refused.

use super::members::{MAX_PATH, MAX_TOTAL, MemberSet, MembersError, shown, unreadable};
use flate2::bufread::GzDecoder;
use std::io::{BufRead, Error, ErrorKind, Read};
use tar::EntryType;

/// Maximum size in bytes of the PAX records before a member, which contain its name and attributes.
const MAX_RECORDS: u64 = 64 * 1024;

/// Name and size of a member that a GNU `L` or PAX `x` entry before the member states.
#[derive(Debug, Default)]
struct Described {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl MemberSet {
    /// Reads an archive, plain or gzipped. Members may be in one common top directory.
    pub fn from_archive(archive: impl Read) -> Result<Self, MembersError> {
        let mut set = Self::new()?;
        let mut archive = std::io::BufReader::new(archive);
        let magic = archive
            .fill_buf()
            .map_err(|e| unreadable("the archive", e))?;
        let archive: Box<dyn Read> = match magic {
            [0x1f, 0x8b, ..] => Box::new(GzDecoder::new(archive)),
            _ => Box::new(archive),
        };
        // Headers and padding count too, so that an archive of millions of empty entries is
        // refused.
        read_archive(archive.take(MAX_TOTAL + 64 * 1024 * 1024), &mut set)?;
        set.without_top()?.complete()
    }
}

/// Adds the regular files of an archive to the set.
fn read_archive(archive: impl Read, set: &mut MemberSet) -> Result<(), MembersError> {
    let failed = |error| unreadable("the archive", error);
    let malformed = |what| failed(Error::new(ErrorKind::InvalidData, what));
    let mut archive = tar::Archive::new(archive);
    let mut before: Option<Described> = None;
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        let described = match kind {
            EntryType::GNULongName => {
                // The name ends with a NUL byte.
                let mut name = bounded(&mut entry, MAX_PATH as u64 + 1)
                    .map_err(failed)?
                    .ok_or_else(|| MembersError::Name {
                        member: "(a name that is too long)".to_owned(),
                    })?;
                name.pop_if(|last| *last == 0);
                Some(Described {
                    name: Some(name),
                    size: None,
                })
            }
            EntryType::XHeader => {
                let records = bounded(&mut entry, MAX_RECORDS)
                    .map_err(failed)?
                    .ok_or_else(|| malformed("the PAX records of a member are too long"))?;
                let described = pax(&records);
                Some(
                    described
                        .ok_or_else(|| malformed("the PAX records of a member are malformed"))?,
                )
            }
            _ => None,
        };
        if let Some(described) = described {
            if before.replace(described).is_some() {
                return Err(malformed("a member has two entries with its name or size"));
            }
            continue;
        }
        // A PAX `g` entry has attributes for all members; an import ignores them.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let described = before.take().unwrap_or_default();
        if kind.is_dir() {
            continue;
        }
        let name = described
            .name
            .unwrap_or_else(|| entry.header().path_bytes().into_owned());
        if !kind.is_file() {
            return Err(MembersError::Special {
                member: shown(&name),
            });
        }
        if described.size.is_some_and(|size| size != entry.size()) {
            return Err(malformed("a member has two different sizes"));
        }
        set.insert(&name, entry.size(), entry)?;
    }
    match before {
        None => Ok(()),
        Some(_) => Err(malformed(
            "it ends after an entry with the name or size of a member that does not follow",
        )),
    }
}

/// Reads an entry completely; returns `None` if it has more than `most` bytes.
fn bounded(entry: &mut tar::Entry<'_, impl Read>, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    if entry.size() > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Parses PAX records of the form `LENGTH KEY=VALUE\n`. A value may contain line feeds.
fn pax(mut records: &[u8]) -> Option<Described> {
    let mut described = Described::default();
    while !records.is_empty() {
        let space = records.iter().position(|byte| *byte == b' ')?;
        let length = number(records.get(..space)?)?;
        let (record, rest) = records.split_at_checked(usize::try_from(length).ok()?)?;
        let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        let value = record.get(equals + 1..)?;
        match record.get(..equals)? {
            b"path" => described.name = Some(value.to_vec()),
            b"size" => described.size = Some(number(value)?),
            _ => {}
        }
        records = rest;
    }
    Some(described)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

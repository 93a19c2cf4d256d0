//! Parser for the entries of a tar archive.
//!
//! A name that does not fit into a member's header is stored in an entry before the member: GNU
//! `L`, or PAX `x` with records. The tar crate would read such entries completely, whatever size
//! they declare, so this module requests raw entries and reads them with limits.
//!
//! Archives that two readers could interpret differently are refused: two names or sizes of a
//! member, a name or size for all members (PAX `g`), PAX records by which some readers change the
//! name or contents of a member, a directory with contents, a name prefix in a header without ustar
//! format, data after the end of the archive.

use super::members::{MAX_PATH, MAX_TOTAL, MemberSet, MembersError, shown, unreadable};
use flate2::bufread::MultiGzDecoder;
use std::io::{BufRead, Error, ErrorKind, Read};
use tar::EntryType;

/// Maximum size in bytes of the PAX records before a member, which contain its name and attributes.
const MAX_RECORDS: u64 = 64 * 1024;
/// PAX records that change neither the name nor the contents of a member.
const ATTRIBUTES: &[&[u8]] = &[
    b"LIBARCHIVE.creationtime",
    b"SCHILY.dev",
    b"SCHILY.fflags",
    b"SCHILY.ino",
    b"SCHILY.nlink",
    b"atime",
    b"comment",
    b"ctime",
    b"gid",
    b"gname",
    b"mtime",
    b"uid",
    b"uname",
];
/// Prefixes of further keys whose records change neither the name nor the contents.
const ATTRIBUTE_GROUPS: &[&[u8]] = &[
    b"LIBARCHIVE.xattr.",
    b"RHT.security.",
    b"SCHILY.acl.",
    b"SCHILY.xattr.",
];
/// Byte range of the name prefix in a ustar header.
const PREFIX: std::ops::Range<usize> = 345..500;

/// Name and size of a member that a GNU `L` or PAX `x` entry before the member states.
#[derive(Debug, Default, PartialEq, Eq)]
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
            // A gzip file may consist of several members, and other readers read all of them.
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(archive)),
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
    let malformed = |what: &str| failed(Error::new(ErrorKind::InvalidData, what));
    let mut archive = tar::Archive::new(archive);
    let mut before: Option<Described> = None;
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if has_stray_prefix(entry.header()) {
            return Err(malformed(
                "a header without ustar format has bytes where ustar has the prefix of the name",
            ));
        }
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
                Some(pax(&records).map_err(|fault| malformed(&fault))?)
            }
            EntryType::XGlobalHeader => {
                let records = bounded(&mut entry, MAX_RECORDS)
                    .map_err(failed)?
                    .ok_or_else(|| malformed("the PAX records for all members are too long"))?;
                let described = pax(&records).map_err(|fault| malformed(&fault))?;
                if described != Described::default() {
                    return Err(malformed("PAX records give all members one name or size"));
                }
                continue;
            }
            _ => None,
        };
        if let Some(described) = described {
            if before.replace(described).is_some() {
                return Err(malformed("a member has two entries with its name or size"));
            }
            continue;
        }
        let described = before.take().unwrap_or_default();
        if kind.is_dir() {
            // Some readers skip the contents, others take them for the next headers.
            if entry.size() != 0 || described.size.is_some_and(|size| size != 0) {
                return Err(malformed("a directory has contents"));
            }
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
    if before.is_some() {
        return Err(malformed(
            "it ends after an entry that gives the name or size of a next member",
        ));
    }
    match only_zeros(archive.into_inner()).map_err(failed)? {
        true => Ok(()),
        false => Err(malformed("it has data after its end")),
    }
}

/// Returns whether a reader that adds the prefix to the name in every format would see another name
/// than this module: the header is not of ustar format and has bytes in place of the prefix.
fn has_stray_prefix(header: &tar::Header) -> bool {
    let prefix = header.as_bytes().get(PREFIX).unwrap_or_default();
    header.as_ustar().is_none() && prefix.iter().any(|byte| *byte != 0)
}

/// Reads to the end; returns whether all bytes are zero, as the padding of an archive is.
fn only_zeros(mut rest: impl Read) -> std::io::Result<bool> {
    let mut bytes = [0; 8192];
    loop {
        match rest.read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(length) if bytes.iter().take(length).all(|byte| *byte == 0) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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

/// Reads PAX records. Refuses records that could give a member another name or other contents, and
/// a second name or size; returns what is wrong.
fn pax(mut records: &[u8]) -> Result<Described, String> {
    let malformed = || "the PAX records of a member are malformed".to_owned();
    let mut described = Described::default();
    while !records.is_empty() {
        let (key, value, rest) = first_record(records).ok_or_else(malformed)?;
        let is_second = match key {
            b"path" => described.name.replace(value.to_vec()).is_some(),
            b"size" => {
                let size = number(value).ok_or_else(malformed)?;
                described.size.replace(size).is_some()
            }
            _ if is_attribute(key) => false,
            _ => {
                let key = shown(key);
                return Err(format!(
                    "its PAX record {key} is not allowed, because some readers would give a file another name or content"
                ));
            }
        };
        if is_second {
            return Err("the PAX records of a member have two names or sizes".to_owned());
        }
        records = rest;
    }
    Ok(described)
}

fn is_attribute(key: &[u8]) -> bool {
    ATTRIBUTES.contains(&key) || ATTRIBUTE_GROUPS.iter().any(|group| key.starts_with(group))
}

/// Splits the first PAX record `LENGTH KEY=VALUE\n` into key, value and what follows. A value may
/// contain line feeds.
fn first_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length = number(records.get(..space)?)?;
    let (record, rest) = records.split_at_checked(usize::try_from(length).ok()?)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((record.get(..equals)?, record.get(equals + 1..)?, rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

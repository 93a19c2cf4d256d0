//! Archives that expand to much more memory or disk space than their own size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod hostile;

use hostile::bounded;
use std::io::{Cursor, Read, repeat};
use tar::EntryType::{self, GNULongLink, GNULongName, Regular, XGlobalHeader, XHeader};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::ErrorCode;

const MIB: u64 = 1024 * 1024;
const INVALID: Option<ErrorCode> = Some(ErrorCode::ArtifactImportSourceInvalid);

fn header(name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn entry(name: &str, kind: EntryType, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, kind, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Builds a PAX record `LENGTH KEY=VALUE\n`, whose length includes its own digits.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let length = (rest.len() + 1..)
        .find(|length| length.to_string().len() + rest.len() == *length)
        .unwrap();
    format!("{length}{rest}")
}

fn file(content: &[u8]) -> Vec<u8> {
    entry("short", Regular, content)
}

/// Reads an archive; returns the error code, or `None` if it is accepted.
fn judged(archive: impl Read) -> Option<ErrorCode> {
    MemberSet::from_archive(archive).err().map(|e| e.code())
}

/// Reads an archive of a manifest and `entries`; returns the error code, or `None` if it is
/// accepted.
fn with(entries: &[Vec<u8>]) -> Option<ErrorCode> {
    let mut archive = entry("manifest.json", Regular, b"{}");
    entries.iter().for_each(|entry| archive.extend(entry));
    archive.resize(archive.len() + 1024, 0);
    judged(archive.as_slice())
}

#[test]
fn long_names_in_archives_need_bounded_memory() {
    // As gzip, such an archive is small, because a run of one byte compresses well. The test reads
    // the uncompressed form, which it generates piece by piece.
    let most = 200 * MIB;
    for (kind, refusal) in [
        (GNULongName, INVALID),
        (GNULongLink, INVALID),
        (XHeader, INVALID),
        (XGlobalHeader, None),
    ] {
        let archive = Cursor::new(header("long", kind, most))
            .chain(repeat(b'a').take(most))
            .chain(Cursor::new(entry("manifest.json", Regular, b"{}")))
            .chain(repeat(0).take(1024));
        let answer = bounded(&format!("{kind:?}"), 60, 16, || judged(archive));
        assert_eq!(answer, refusal, "{kind:?}");
    }
}

#[test]
fn archive_contents_are_not_held_in_memory() {
    let most = 100 * MIB;
    let archive = Cursor::new(entry("manifest.json", Regular, b"{}"))
        .chain(Cursor::new(header("large", Regular, most)))
        .chain(repeat(b'a').take(most))
        .chain(repeat(0).take(1024));
    let members = bounded("a large member", 60, 16, || {
        MemberSet::from_archive(archive)
    });
    // Control: the archive was accepted.
    members.unwrap();
}

#[test]
fn gnu_and_pax_long_names_apply_to_next_member() {
    let parts = ["d".repeat(200), "e".repeat(200), "f".repeat(200)];
    let long = parts.join("/");
    let named = format!("{long}\0");
    let path = record("path", &long);
    let elsewhere = [("mtime", "1.5"), ("SCHILY.xattr.user.x", "two\nlines")]
        .map(|(key, value)| record(key, value))
        .concat();
    let sized = path.clone() + &record("size", "1");
    for before in [
        vec![entry("././@LongLink", GNULongName, named.as_bytes())],
        vec![entry("././@LongLink", GNULongName, long.as_bytes())],
        vec![entry("x", XHeader, path.as_bytes())],
        vec![entry("x", XHeader, sized.as_bytes())],
        vec![entry("x", XHeader, (elsewhere + &path).as_bytes())],
        vec![
            entry("g", XGlobalHeader, record("comment", "c").as_bytes()),
            entry("x", XHeader, path.as_bytes()),
        ],
    ] {
        let archive = [before, vec![file(b"1")]].concat();
        assert_eq!(with(&archive), None);
        // Shows that the member has the long name: a second member with the long name is refused,
        // one with the short name is accepted.
        assert_eq!(with(&[archive.clone(), vec![file(b"2")]].concat()), None);
        assert_eq!(with(&[archive.clone(), archive].concat()), INVALID);
    }
}

#[test]
fn ambiguous_archive_entries_are_refused() {
    let name = || entry("././@LongLink", GNULongName, b"name\0");
    let records = |text: &str| entry("x", XHeader, text.as_bytes());
    let path = record("path", "name");
    let refused = [
        vec![name(), name(), file(b"1")],
        vec![records(&path), records(&path), file(b"1")],
        vec![name(), records(&path), file(b"1")],
        vec![name()],
        vec![records(&path)],
        vec![entry("././@LongLink", GNULongLink, b"name\0"), file(b"1")],
        vec![
            entry("././@LongLink", GNULongName, b"../name\0"),
            file(b"1"),
        ],
        vec![
            entry("././@LongLink", GNULongName, &[b'a'; 4_098]),
            file(b"1"),
        ],
        vec![records(&record("path", "../name")), file(b"1")],
        vec![records(&record("path", "/name")), file(b"1")],
        vec![records(&record("size", "2")), file(b"1")],
        vec![records(&record("size", "-1")), file(b"1")],
        vec![records("no record\n"), file(b"1")],
        vec![records("99 path=name\n"), file(b"1")],
        vec![records("12 path=name"), file(b"1")],
        vec![records("0 path=name\n"), file(b"1")],
        vec![records("18446744073709551615 path=name\n"), file(b"1")],
        vec![records("3 \n"), file(b"1")],
        vec![entry("short", EntryType::GNUSparse, b"1")],
    ];
    for (number, archive) in refused.iter().enumerate() {
        assert_eq!(with(archive), INVALID, "number {number}");
    }
    // Control: an unambiguous archive is accepted.
    assert_eq!(with(&[name(), file(b"1")]), None);
    assert_eq!(with(&[records(&path), file(b"1")]), None);
}

#[test]
fn import_refuses_a_directory_with_more_names_than_a_bundle_may_have_files() {
    let work = tempfile::tempdir().unwrap();
    std::fs::write(work.path().join("manifest.json"), "{}").unwrap();
    let below = |count: usize| {
        for number in 0..count {
            std::fs::create_dir(work.path().join(number.to_string())).unwrap();
        }
        let dir = Dir::open(work.path()).unwrap();
        MemberSet::from_directory(&dir).err().map(|e| e.code())
    };
    // Directories are not members, but their names count. Control: without them, the bundle is
    // accepted.
    assert_eq!(below(0), None);
    assert_eq!(below(2000), Some(ErrorCode::ArtifactTooLarge));
}

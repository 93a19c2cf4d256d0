//! Archives that try to cost more than they weigh.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Helpers, too, may fail loudly.

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

/// A record `LENGTH KEY=VALUE\n`, whose length counts itself.
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

/// Code of the refusal, if it is one.
fn judged(archive: impl Read) -> Option<ErrorCode> {
    MemberSet::from_archive(archive).err().map(|e| e.code())
}

/// An archive of a manifest and these entries.
fn with(entries: &[Vec<u8>]) -> Option<ErrorCode> {
    let mut archive = entry("manifest.json", Regular, b"{}");
    entries.iter().for_each(|entry| archive.extend(entry));
    archive.resize(archive.len() + 1024, 0);
    judged(archive.as_slice())
}

#[test]
fn a_long_name_costs_no_memory() {
    // Much of one byte is little when it is compressed; the archive here is what comes out.
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
fn contents_are_not_kept_in_memory() {
    let most = 100 * MIB;
    let archive = Cursor::new(entry("manifest.json", Regular, b"{}"))
        .chain(Cursor::new(header("large", Regular, most)))
        .chain(repeat(b'a').take(most))
        .chain(repeat(0).take(1024));
    let members = bounded("a large member", 60, 16, || {
        MemberSet::from_archive(archive)
    });
    // The control: it was taken.
    members.unwrap();
}

#[test]
fn gnu_and_pax_names_within_the_bounds_name_the_next_member() {
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
        // The long name is taken and the short one is free, which a second member of each tells.
        assert_eq!(with(&[archive.clone(), vec![file(b"2")]].concat()), None);
        assert_eq!(with(&[archive.clone(), archive].concat()), INVALID);
    }
}

#[test]
fn entries_that_readers_could_take_differently_are_refused() {
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
    // The control.
    assert_eq!(with(&[name(), file(b"1")]), None);
    assert_eq!(with(&[records(&path), file(b"1")]), None);
}

#[test]
fn a_directory_of_very_many_names_is_not_listed_whole() {
    let work = tempfile::tempdir().unwrap();
    std::fs::write(work.path().join("manifest.json"), "{}").unwrap();
    let below = |count: usize| {
        for number in 0..count {
            std::fs::create_dir(work.path().join(number.to_string())).unwrap();
        }
        let dir = Dir::open(work.path()).unwrap();
        MemberSet::from_directory(&dir).err().map(|e| e.code())
    };
    // Directories are no members; the control is few of them.
    assert_eq!(below(0), None);
    assert_eq!(below(2000), Some(ErrorCode::ArtifactTooLarge));
}

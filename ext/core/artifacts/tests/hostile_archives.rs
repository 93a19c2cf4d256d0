//! Archives that expand to much more memory or disk space than their own size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod hostile;

use hostile::bounded;
use std::io::{Cursor, Read, repeat};
use tar::EntryType::{self, GNULongLink, GNULongName, Regular, XGlobalHeader, XHeader};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::{CodedError, ErrorCode};

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

/// The second number of `bounded` is the limit on memory in MiB.
#[test]
fn archive_name_of_200_mib_is_refused_within_16_mib_of_memory() {
    // As gzip, such an archive is small, because a run of one byte compresses well. The test reads
    // the uncompressed form, which it generates piece by piece.
    let most = 200 * MIB;
    for (kind, refusal) in [
        (GNULongName, INVALID),
        (GNULongLink, INVALID),
        (XHeader, INVALID),
        (XGlobalHeader, INVALID),
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
fn archive_with_a_member_of_100_mib_is_read_within_16_mib_of_memory() {
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
fn archive_with_ambiguous_or_malformed_member_names_is_refused() {
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
fn pax_records_with_unsupported_or_repeated_keys_and_global_names_or_sizes_are_refused() {
    let reshaping = [
        ("path", "name"),
        ("size", "1"),
        ("linkpath", "other"),
        ("hdrcharset", "BINARY"),
        ("GNU.sparse.name", "name"),
        ("GNU.sparse.realsize", "9"),
        ("SCHILY.realsize", "9"),
        ("VENDOR.unknown", "x"),
        ("mtim", "1"),
    ];
    let global = |key, value| {
        vec![
            entry("g", XGlobalHeader, record(key, value).as_bytes()),
            file(b"1"),
        ]
    };
    let local = |key, value| {
        vec![
            entry("x", XHeader, record(key, value).as_bytes()),
            file(b"1"),
        ]
    };
    for (key, value) in reshaping {
        assert_eq!(with(&global(key, value)), INVALID, "{key} for all members");
        // For one member, a record may set the name and the size.
        if !matches!(key, "path" | "size") {
            assert_eq!(with(&local(key, value)), INVALID, "{key}");
        }
    }
    assert_eq!(
        with(&[entry("g", XGlobalHeader, b"no record\n"), file(b"1")]),
        INVALID
    );
    for (key, value) in [
        ("path", [("path", "a"), ("path", "b")]),
        ("size", [("size", "1"), ("size", "1")]),
    ] {
        let twice = value.map(|(key, value)| record(key, value)).concat();
        let archive = [entry("x", XHeader, twice.as_bytes()), file(b"1")];
        assert_eq!(with(&archive), INVALID, "{key} twice");
    }
    // Control: attributes that change neither name nor contents.
    for (key, value) in [
        ("comment", "c0ffee"),
        ("mtime", "1.5"),
        ("uname", "root"),
        ("SCHILY.xattr.user.x", "y"),
    ] {
        assert_eq!(with(&global(key, value)), None, "{key} for all members");
        assert_eq!(with(&local(key, value)), None, "{key}");
    }
    assert_eq!(with(&local("path", "name")), None);
    assert_eq!(with(&local("size", "1")), None);
}

#[test]
fn archives_in_which_other_tar_readers_find_different_members_are_refused() {
    // Readers that skip the contents of a directory see no file, others see one.
    let directory = |content: &[u8]| entry("d", EntryType::Directory, content);
    assert_eq!(with(&[directory(&file(b"1"))]), INVALID);
    assert_eq!(with(&[directory(b"")]), None);
    let sized = entry("x", XHeader, record("size", "512").as_bytes());
    assert_eq!(with(&[sized, directory(b"")]), INVALID);

    // Readers that add the ustar prefix in every format see another name.
    let prefixed = |magic: &[u8; 8], prefix: &[u8]| {
        let mut bytes = file(b"1");
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes().copy_from_slice(&bytes[..512]);
        header.as_mut_bytes()[257..265].copy_from_slice(magic);
        header.as_mut_bytes()[345..345 + prefix.len()].copy_from_slice(prefix);
        header.set_cksum();
        bytes[..512].copy_from_slice(header.as_bytes());
        bytes
    };
    for magic in [b"ustar  \0", &[0; 8]] {
        assert_eq!(with(&[prefixed(magic, b"p")]), INVALID, "{magic:?}");
        assert_eq!(with(&[prefixed(magic, b"")]), None, "{magic:?}");
    }
    assert_eq!(with(&[prefixed(b"ustar\x0000", b"p")]), None);

    // Readers that do not stop at the first empty block, or at the first member of a gzip file,
    // see more files.
    let whole = |tail: &[u8]| {
        let mut archive = entry("manifest.json", Regular, b"{}");
        archive.resize(archive.len() + 1024, 0);
        archive.extend_from_slice(tail);
        archive
    };
    let zipped = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, bytes).unwrap();
        gzip.finish().unwrap()
    };
    for archive in [
        whole(&file(b"1")),
        whole(b"x"),
        zipped(&whole(&file(b"1"))),
        [zipped(&whole(b"")), zipped(&file(b"1"))].concat(),
        [zipped(&whole(b"")), b"x".to_vec()].concat(),
    ] {
        assert_eq!(judged(archive.as_slice()), INVALID);
    }
    let two = [
        zipped(&entry("manifest.json", Regular, b"{}")),
        zipped(&[0; 1024]),
    ]
    .concat();
    for archive in [whole(b""), whole(&[0; 10_240]), zipped(&whole(b"")), two] {
        assert_eq!(judged(archive.as_slice()), None);
    }
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

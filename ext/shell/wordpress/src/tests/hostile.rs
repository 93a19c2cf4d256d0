//! Tests of malicious and damaged zips. Each case has a control: the same zip without the bad part
//! is installed.

use super::*;

/// Signature of a header in the central directory of a zip.
const CENTRAL: &[u8] = b"PK\x01\x02";

/// Returns a zip of a core with an additional last entry that has this name, content and mode.
fn zip_with(name: &str, bytes: &[u8], mode: u32) -> Vec<u8> {
    let mut writer =
        zip::ZipWriter::new_append(Cursor::new(zip_of("", &core_files("6.9")))).unwrap();
    let options = SimpleFileOptions::default().unix_permissions(mode & 0o777);
    match mode & 0o170_000 {
        0o120_000 => {
            let target = std::str::from_utf8(bytes).unwrap();
            writer.add_symlink(name, target, options).unwrap();
        }
        0o040_000 => writer.add_directory(name, options).unwrap(),
        _ => {
            writer.start_file(name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

/// Replaces every `from` in a zip by `to`, which must have the same length.
fn forged(mut zip: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut found = 0;
    while let Some(at) = zip.windows(from.len()).position(|bytes| bytes == from) {
        zip[at..at + from.len()].copy_from_slice(to);
        found += 1;
    }
    assert!(found > 0);
    zip
}

/// Returns the positions of the headers in the central directory.
fn central(zip: &[u8]) -> Vec<usize> {
    let windows = zip.windows(4).enumerate();
    windows
        .filter(|(_, bytes)| *bytes == CENTRAL)
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn zip_is_refused_if_any_entry_has_a_name_that_is_not_a_plain_relative_path() {
    for good in ["wp-includes/x.php", "x.php", "a b/é.php", "WP-LOAD.PHP"] {
        let bench = Bench::new();
        bench.install_zip(&zip_with(good, b"x", 0o644)).unwrap();
        assert!(!bench.path("x.php").exists());
    }
    for bad in [
        "../x.php",
        "wp-includes/../../../x.php",
        "/tmp/x.php",
        "wp-includes//x.php",
        "wp-includes/./x.php",
        "wp-includes\\..\\x.php",
        "wp-includes/x\n.php",
    ] {
        let bench = Bench::new();
        // The zip library would normalise such a name, so a name of the same length is written and
        // its bytes are replaced.
        let plain = "n".repeat(bad.len());
        let zip = forged(
            zip_with(&plain, b"x", 0o644),
            plain.as_bytes(),
            bad.as_bytes(),
        );
        let result = bench.install_zip(&zip);
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(error.message.contains("relative path"), "{}", error.message);
        assert!(!bench.path("x.php").exists() && !Path::new("/tmp/x.php").exists());
    }
}

#[test]
fn zip_with_a_symbolic_link_or_special_file_is_refused() {
    let bench = Bench::new();
    let empty = zip_with("wp-includes/empty/", b"", 0o040_755);
    bench.install_zip(&empty).unwrap();
    for name in ["wp-includes/link.php", "link", "wp-content"] {
        let bench = Bench::new();
        let result = bench.install_zip(&zip_with(name, b"/etc/passwd", 0o120_777));
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(error.message.contains("link"), "{}", error.message);
    }
    // Set the mode of a FIFO, in the upper half of the external attributes of the last entry.
    let mut zip = zip_with("wp-includes/fifo", b"", 0o644);
    let last = *central(&zip).last().unwrap();
    zip[last + 40..last + 42].copy_from_slice(&0o010_644_u16.to_le_bytes());
    let bench = Bench::new();
    let result = bench.install_zip(&zip);
    bench.refused(result, ErrorCode::WordpressInvalid);
}

#[test]
fn zip_with_two_entries_of_the_same_path_is_refused() {
    let same = zip_with("wp-load.phX", b"x", 0o644);
    Bench::new().install_zip(&same).unwrap();
    let bench = Bench::new();
    let result = bench.install_zip(&forged(same, b"wp-load.phX", b"wp-load.php"));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("twice"), "{}", error.message);
    // A file has the path of a directory in the same zip.
    let bench = Bench::new();
    let result = bench.install_zip(&zip_with("wp-includes/js", b"x", 0o644));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("twice"), "{}", error.message);
}

#[test]
fn size_limits_apply_to_the_unpacked_bytes_and_not_to_the_stated_size() {
    let bomb = zip_with("wp-includes/zeros.php", &vec![0; 300_000], 0o644);
    assert!(bomb.len() < 10_000);
    let unpacked = |zip: &[u8], file: u64, total: u64| {
        let mut bench = Bench::new();
        bench.limits.file = file;
        bench.limits.total = total;
        let result = bench.install_zip(zip);
        (bench, result)
    };
    unpacked(&bomb, 300_000, 400_000).1.unwrap();
    for (file, total) in [(299_999, 400_000), (300_000, 300_000)] {
        let (bench, result) = unpacked(&bomb, file, total);
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(error.message.contains("bytes in"), "{}", error.message);
    }
    // The same zip, but its header states a size of one byte.
    let mut small = bomb;
    let last = *central(&small).last().unwrap();
    small[last + 24..last + 28].copy_from_slice(&1_u32.to_le_bytes());
    let (bench, result) = unpacked(&small, 299_999, 400_000);
    bench.refused(result, ErrorCode::WordpressInvalid);
}

#[test]
fn zip_with_more_entries_than_the_limit_is_refused() {
    let zip = zip_of("", &core_files("6.9"));
    let entries = core_files("6.9").len() as u64;
    let mut bench = Bench::new();
    bench.limits.entries = entries - 1;
    let result = bench.install_zip(&zip);
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("files and directories"));
    bench.limits.entries = entries;
    bench.install_zip(&zip).unwrap();
}

#[test]
fn zip_file_larger_than_the_limit_is_refused() {
    let zip = zip_of("", &core_files("6.9"));
    let mut bench = Bench::new();
    bench.limits.archive = zip.len() as u64 - 1;
    let result = bench.install_zip(&zip);
    bench.refused(result, ErrorCode::WordpressInvalid);
    bench.limits.archive += 1;
    bench.install_zip(&zip).unwrap();
}

#[test]
fn damaged_and_truncated_zips_are_refused() {
    let whole = zip_of("", &core_files("6.9"));
    Bench::new().install_zip(&whole).unwrap();
    let refused = |zip: &[u8], what: &str| {
        let bench = Bench::new();
        let result = bench.install_zip(zip);
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(
            error.message.contains("damaged"),
            "{what}: {}",
            error.message
        );
    };
    refused(b"", "empty file");
    refused(b"<html>not found</html>", "no zip");
    for length in [whole.len() - 1, whole.len() / 2, 30] {
        refused(&whole[..length], "truncated");
    }
    // Flip one bit of the content of the first file, so that its CRC-32 is wrong.
    let mut flipped = whole.clone();
    let name = flipped
        .windows(11)
        .position(|w| w == b"license.txt")
        .unwrap();
    flipped[name + 12] ^= 1;
    refused(&flipped, "content");
    // Set bit 0 of the flags of the last entry, which marks the entry as encrypted.
    let mut encrypted = whole;
    let last = *central(&encrypted).last().unwrap();
    encrypted[last + 8] |= 1;
    refused(&encrypted, "encrypted");
}

#[test]
fn zip_whose_list_of_entries_is_too_long_is_refused() {
    // Empty entries with long names: each takes 300 bytes in the list.
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for number in 0..60_000 {
        let name = format!("{}/{number:0>50}", "n".repeat(200));
        writer.start_file(name, options).unwrap();
    }
    let zip = writer.finish().unwrap().into_inner();
    let bench = Bench::new();
    let result = bench.install_zip(&zip);
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("too long"), "{}", error.message);
}

#[test]
fn zip_without_a_required_core_file_is_refused_and_the_error_names_the_file() {
    for missing in [
        "wp-load.php",
        "wp-settings.php",
        "wp-includes/version.php",
        "wp-admin/includes/upgrade.php",
    ] {
        let mut files = core_files("6.9");
        files.remove(missing);
        let bench = Bench::new();
        let result = bench.install_zip(&zip_of("wordpress/", &files));
        let error = bench.refused(result, ErrorCode::WordpressInvalid);
        assert!(error.message.contains("is missing"), "{}", error.message);
    }
    let bench = Bench::new();
    let result = bench.install_zip(&zip_of("other/", &core_files("6.9")));
    let error = bench.refused(result, ErrorCode::WordpressInvalid);
    assert!(error.message.contains("wp-load.php"), "{}", error.message);
}

#[test]
fn zip_without_a_valid_version_in_version_php_is_refused_and_the_error_has_no_escape_code() {
    let refused = |text: &str| {
        let mut files = core_files("6.9");
        files.insert("wp-includes/version.php".to_owned(), text.into());
        let bench = Bench::new();
        let result = bench.install_zip(&zip_of("", &files));
        bench.refused(result, ErrorCode::WordpressInvalid)
    };
    for odd in [
        "../../x",
        ".9",
        "6.9/..",
        "",
        "current",
        "6 9",
        &"6".repeat(33),
    ] {
        refused(&format!("<?php\n$wp_version = '{odd}';\n"));
    }
    refused("<?php\n$wp_version = exec('id');\n");
    let error = refused("<?php\n$wp_version = '\u{1b}[2J';\n");
    assert!(!error.message.contains('\u{1b}'), "{}", error.message);
}

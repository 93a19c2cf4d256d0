//! `GIT binary patch` blocks: the new and the old contents, each deflated and in git's base 85.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest, Sha1};
use std::io::{Read, Write};
use wp_codebox_contracts::hex;

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// Number of deflated bytes that one line of a literal encodes, as in git.
const LINE: usize = 52;

/// Returns the id that git gives to a blob with these contents; zeros if there is no blob.
pub(super) fn blob_id(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else {
        return "0".repeat(40);
    };
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hex(&hasher.finalize())
}

/// Returns a binary patch without its `index` line: the new contents, then the old contents.
pub(super) fn binary_patch(before: &[u8], after: &[u8]) -> Vec<u8> {
    let mut out = b"GIT binary patch\n".to_vec();
    literal(after, &mut out);
    literal(before, &mut out);
    out
}

fn literal(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("literal {}\n", bytes.len()).as_bytes());
    for chunk in deflate(bytes).chunks(LINE) {
        let count = chunk.len() as u8;
        out.push(if count <= 26 {
            b'A' + count - 1
        } else {
            b'a' + count - 27
        });
        for group in chunk.chunks(4) {
            let mut word = [0_u8; 4];
            word[..group.len()].copy_from_slice(group);
            let mut value = u32::from_be_bytes(word);
            let mut digits = [0_u8; 5];
            for digit in digits.iter_mut().rev() {
                *digit = ALPHABET[(value % 85) as usize];
                value /= 85;
            }
            out.extend_from_slice(&digits);
        }
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Decodes the lines of a literal; `None` if they are malformed or do not give exactly `size`
/// bytes.
pub(super) fn literal_bytes(lines: &[&[u8]], size: u64) -> Option<Vec<u8>> {
    let mut deflated = Vec::new();
    for line in lines {
        let (count, digits) = line.split_first()?;
        let count = match count {
            b'A'..=b'Z' => count - b'A' + 1,
            b'a'..=b'z' => count - b'a' + 27,
            _ => return None,
        };
        let mut bytes = Vec::with_capacity(LINE);
        for group in digits.chunks(5) {
            let mut word = 0_u32;
            for digit in group {
                let value = ALPHABET.iter().position(|letter| letter == digit)?;
                word = word
                    .checked_mul(85)?
                    .checked_add(u32::try_from(value).ok()?)?;
            }
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        if digits.len() != usize::from(count).div_ceil(4) * 5 {
            return None;
        }
        bytes.truncate(usize::from(count));
        deflated.extend_from_slice(&bytes);
    }
    let mut bytes = Vec::new();
    // Decodes at most one byte more than stated, which suffices to detect a wrong size.
    let mut decoder = ZlibDecoder::new(deflated.as_slice()).take(size.checked_add(1)?);
    decoder.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail, and readers would refuse a truncated literal.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_ids_and_base85_match_known_values() {
        // Value that `git hash-object` prints for the empty blob.
        assert_eq!(
            blob_id(Some(b"")),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
        let patch = String::from_utf8(binary_patch(b"", b"\0\xff")).unwrap();
        let lines: Vec<_> = patch.lines().collect();
        assert_eq!(lines[..2], ["GIT binary patch", "literal 2"]);
        // Ten deflated bytes: the length character `J` and three groups of five digits.
        assert_eq!((lines[2].len(), &lines[2][..1]), (16, "J"));
        assert_eq!(lines[3..5], ["", "literal 0"]);
    }
}

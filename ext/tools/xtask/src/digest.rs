//! The contract digest: one value for the whole set of schemas.
//!
//! Input per `abilities/schemas/*.json`, sorted bytewise by file name: the name, a newline, the
//! decimal length in bytes, a newline, the bytes, a newline. The digest is the hex SHA-256 of
//! the concatenation. The extension computes the same digest over its built-in schemas.

use sha2::{Digest, Sha256};

/// Returns the digest over `(file name, bytes)` pairs, in any order.
pub fn contract_digest(files: &[(String, Vec<u8>)]) -> String {
    let mut sorted: Vec<&(String, Vec<u8>)> = files.iter().collect();
    sorted.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let mut hash = Sha256::new();
    for (name, bytes) in sorted {
        hash.update(name.as_bytes());
        hash.update(format!("\n{}\n", bytes.len()).as_bytes());
        hash.update(bytes);
        hash.update(b"\n");
    }
    hex(&hash.finalize())
}

/// Formats bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contract_digest_matches_the_documented_input_format() {
        let b = ("b.json".to_owned(), b"{}\n".to_vec());
        let a = ("a.json".to_owned(), b"[1]".to_vec());
        // SHA-256 of "a.json\n3\n[1]\nb.json\n3\n{}\n\n".
        let direct = hex(&Sha256::digest(b"a.json\n3\n[1]\nb.json\n3\n{}\n\n"));
        assert_eq!(contract_digest(&[b.clone(), a.clone()]), direct);
        assert_eq!(contract_digest(&[a.clone(), b]), direct);
        assert_ne!(contract_digest(&[a]), direct);
    }
}

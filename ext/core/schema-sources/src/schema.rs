//! A flattened schema, and the contract digest: one value for the whole set of schemas.

use sha2::{Digest, Sha256};

/// End of the file names of schemas.
pub const SUFFIX: &str = ".v1.schema.json";

/// A schema without references to parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Name of the file.
    pub file: String,
    /// Text of the file: JSON indented by two spaces, with a final newline.
    pub text: String,
}

impl Schema {
    /// Returns the short name: the file name without [`SUFFIX`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.strip_suffix(SUFFIX).unwrap_or(&self.file)
    }
}

/// Returns the contract digest, which tells whether two sets of schemas are the same.
///
/// Input per schema, sorted bytewise by file name: the name, a newline, the decimal length in bytes,
/// a newline, the bytes, a newline. The digest is the hex SHA-256 of the concatenation. The plugin
/// and the extension each hold this value.
#[must_use]
pub fn contract_digest(schemas: &[Schema]) -> String {
    let mut sorted: Vec<&Schema> = schemas.iter().collect();
    sorted.sort_by(|a, b| a.file.cmp(&b.file));
    let mut hash = Sha256::new();
    for Schema { file, text } in sorted {
        hash.update(format!("{file}\n{}\n{text}\n", text.len()));
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contract_digest_matches_the_documented_input_format() {
        let schema = |file: &str, text: &str| Schema {
            file: file.to_owned(),
            text: text.to_owned(),
        };
        let (a, b) = (schema("a.json", "[1]"), schema("b.json", "{}\n"));
        // printf 'a.json\n3\n[1]\nb.json\n3\n{}\n\n' | sha256sum
        let direct = "da88c6ff8410ca41c2d399c659b71b9645e4cbb3879835bc4ed8e80d5854b30c";
        assert_eq!(contract_digest(&[b.clone(), a.clone()]), direct);
        assert_eq!(contract_digest(&[a.clone(), b]), direct);
        assert_ne!(contract_digest(&[a]), direct);
    }
}

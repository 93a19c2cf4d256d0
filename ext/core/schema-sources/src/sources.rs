//! The source files, read and parsed.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of the parts below that of the schemas, as references write it.
pub(crate) const PARTS: &str = "parts/";

/// Why a source file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or directory could not be read.
    #[error("{} could not be read: {source}", path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of reading.
        #[source]
        source: io::Error,
    },
    /// A file is not a JSON object.
    #[error("{} is not a JSON object: {source}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// The directory has no schema.
    #[error("{} holds no schema", path.display())]
    Empty {
        /// Path of the directory.
        path: PathBuf,
    },
}

/// Schemas and parts as written, with their references.
#[derive(Debug, Clone, PartialEq)]
pub struct Sources {
    /// Schemas by file name.
    pub(crate) schemas: BTreeMap<String, Map<String, Value>>,
    /// Parts by path below the directory, such as `parts/run-cost.json`.
    pub(crate) parts: BTreeMap<String, Map<String, Value>>,
}

impl Sources {
    /// Reads the schemas in `directory` and the parts in its folder `parts`. Other folders are
    /// ignored.
    pub fn read(directory: &Path) -> Result<Self, ReadError> {
        let schemas = objects(directory, "")?;
        let parts = directory.join(PARTS);
        let parts = match parts.is_dir() {
            true => objects(&parts, PARTS)?,
            false => BTreeMap::new(),
        };
        if schemas.is_empty() {
            return Err(ReadError::Empty {
                path: directory.to_path_buf(),
            });
        }
        Ok(Self { schemas, parts })
    }

    /// Returns every file with its contents: its path below the directory, schemas first.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let files = self.schemas.iter().chain(&self.parts);
        files.map(|(file, members)| (file.as_str(), members))
    }
}

/// Reads the files in `directory` whose extension is `json`, by their names after `prefix`.
fn objects(
    directory: &Path,
    prefix: &str,
) -> Result<BTreeMap<String, Map<String, Value>>, ReadError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        |source| ReadError::File { path, source }
    };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        if !path.is_file() || path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read(&path).map_err(failed(&path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        let object = serde_json::from_slice(&text);
        found.insert(
            name,
            object.map_err(|source| ReadError::Json { path, source })?,
        );
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    /// Returns sources with these files; each value must be an object.
    pub(crate) fn sources(files: &[(&str, Value)]) -> Sources {
        let (mut schemas, mut parts) = (BTreeMap::new(), BTreeMap::new());
        for (file, value) in files {
            let into = match file.starts_with(PARTS) {
                true => &mut parts,
                false => &mut schemas,
            };
            into.insert((*file).to_owned(), value.as_object().unwrap().clone());
        }
        Sources { schemas, parts }
    }

    #[test]
    fn json_files_of_the_directory_and_of_its_parts_are_read_and_examples_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (file, text) in [
            ("a.v1.schema.json", r#"{"type": "object"}"#),
            ("parts/b.json", r#"{"type": "string"}"#),
            ("examples/a.json", "[]"),
            ("notes.txt", "-"),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        let wanted = sources(&[
            ("a.v1.schema.json", json!({"type": "object"})),
            ("parts/b.json", json!({"type": "string"})),
        ]);
        assert_eq!(Sources::read(root).unwrap(), wanted);
    }

    #[test]
    fn file_that_is_not_a_json_object_and_directory_without_schema_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let read = || Sources::read(directory.path()).unwrap_err().to_string();
        assert!(read().ends_with("holds no schema"), "{}", read());
        fs::write(directory.path().join("a.v1.schema.json"), "[1]").unwrap();
        assert!(
            read().contains("a.v1.schema.json is not a JSON object"),
            "{}",
            read()
        );
    }
}

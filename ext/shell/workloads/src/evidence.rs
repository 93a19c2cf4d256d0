//! Documents that commands printed, read from a bundle, from the JSON output of this program, or
//! from the document itself.

use crate::bundle_directory::open_bundle;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Manifest, ManifestFile};

/// Maximum size of a file with documents, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum depth in a document at which other documents are searched for.
const MAX_DEPTH: usize = 12;
/// Files of a bundle that contain what commands printed. All are searched: each has a limit for the
/// output of all commands, and a shortened document in one can be complete in another.
const MEMBERS: [&str; 3] = [
    "files/bench-results.json",
    "files/runtime-evidence/recipe-workflow.json",
    "commands.jsonl",
];
/// Value of `kind` in a bundle's manifest for files with results of benchmarks.
const BENCHMARK_RESULTS: &str = "benchmark-results";

/// Parsed files in which documents of commands are searched.
#[derive(Debug)]
pub struct Evidence {
    /// Path that the caller named.
    pub shown: String,
    /// The bundle; `None` if the documents come from a single file or from this program.
    pub bundle: Option<Bundle>,
    /// Parsed files, with their paths in the bundle or on the host.
    roots: Vec<(String, Value)>,
}

/// Bundle from which documents are read.
#[derive(Debug)]
pub struct Bundle {
    /// Id of the bundle.
    pub id: String,
    /// Files that its manifest lists.
    pub files: Vec<ManifestFile>,
}

/// A document that a command printed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Printed {
    /// File that contains the document.
    pub path: String,
    pub document: Value,
}

fn unreadable(shown: &str, why: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, format!("{shown} {why}"))
}

impl Evidence {
    /// Reads a bundle directory, a JSON file, a file with one JSON value per line, or with `-`
    /// standard input.
    pub fn read(path: &Path) -> Result<Self, ErrorBody> {
        match path.is_dir() {
            true => Self::of_bundle(path),
            false => Self::of_file(path),
        }
    }

    /// Reads a bundle directory. Does not verify it.
    pub fn of_bundle(path: &Path) -> Result<Self, ErrorBody> {
        let (directory, shown) = open_bundle(path)?;
        let bytes = |name: &str| directory.file_bytes(name, MAX_BYTES).ok();
        let manifest: Manifest = bytes("manifest.json")
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| {
                unreadable(&shown, "has no manifest.json of a bundle that can be read")
                    .hint("`wp-codebox artifacts verify` shows what is wrong with it")
            })?;
        let named = manifest
            .files
            .iter()
            .filter(|f| f.kind == BENCHMARK_RESULTS);
        let mut names: Vec<&str> = named.map(|file| file.path.as_str()).collect();
        for member in MEMBERS {
            if !names.contains(&member) {
                names.push(member);
            }
        }
        let roots = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), parse(&bytes(name)?)?)))
            .collect();
        Ok(Self {
            shown,
            roots,
            bundle: Some(Bundle {
                id: manifest.id,
                files: manifest.files,
            }),
        })
    }

    fn of_file(path: &Path) -> Result<Self, ErrorBody> {
        let shown = path.display().to_string();
        let mut bytes = Vec::new();
        let read = match path == Path::new("-") {
            true => std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes),
            false => std::fs::File::open(path)
                .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
        };
        read.map_err(|e| unreadable(&shown, &format!("cannot be read: {e}")))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(
                &shown,
                &format!("is larger than {MAX_BYTES} bytes"),
            ));
        }
        let root = parse(&bytes).ok_or_else(|| unreadable(&shown, "is not JSON"))?;
        Ok(Self {
            roots: vec![(shown.clone(), root)],
            shown,
            bundle: None,
        })
    }

    /// Creates evidence from a document that this program has made.
    pub fn of_document(shown: String, document: Value) -> Self {
        Self {
            roots: vec![(shown.clone(), document)],
            shown,
            bundle: None,
        }
    }

    /// Returns each document for which `wanted` returns true, equal ones only once.
    pub(crate) fn documents(&self, wanted: &dyn Fn(&Value) -> bool) -> Vec<Printed> {
        let mut all: Vec<Printed> = Vec::new();
        for (path, root) in &self.roots {
            let mut found = Vec::new();
            search(root, wanted, 0, &mut found);
            for document in found {
                if all.iter().all(|other| other.document != document) {
                    all.push(Printed {
                        path: path.clone(),
                        document,
                    });
                }
            }
        }
        all
    }
}

/// Parses one JSON value, or one per line as a list.
fn parse(bytes: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Some(value);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let rows: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
    rows.ok().filter(|rows| !rows.is_empty()).map(Value::Array)
}

/// Adds the wanted documents of a value to `found`, in order; also those that a command printed as
/// text. A document that a run's output contains in several places is added once.
fn search(value: &Value, wanted: &dyn Fn(&Value) -> bool, depth: usize, found: &mut Vec<Value>) {
    if depth > MAX_DEPTH {
        return;
    }
    if wanted(value) {
        if !found.contains(value) {
            found.push(value.clone());
        }
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "stdout" && text.starts_with('{') => {
                        if let Ok(printed) = serde_json::from_str(text) {
                            search(&printed, wanted, depth + 1, found);
                        }
                    }
                    value => search(value, wanted, depth + 1, found),
                }
            }
        }
        Value::Array(rows) => rows
            .iter()
            .for_each(|row| search(row, wanted, depth + 1, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn documents(root: Value) -> Vec<Value> {
        let evidence = Evidence::of_document("x".to_owned(), root);
        let found = evidence.documents(&|value| value["schema"] == "s");
        found.into_iter().map(|printed| printed.document).collect()
    }

    #[test]
    fn documents_with_the_schema_are_found_once_in_lists_members_and_printed_text() {
        let (one, two) = (
            json!({"schema": "s", "id": 1}),
            json!({"schema": "s", "id": 2}),
        );
        assert_eq!(documents(one.clone()).len(), 1);
        let run = json!({
            "executions": [
                {"stdout": one.to_string(), "stderr": two.to_string()},
                {"stdout": "{not json"},
            ],
            "benchResults": one,
            "benchResultsList": [one, two],
        });
        assert_eq!(documents(run), [one, two]);
        assert!(documents(json!({"schema": "other"})).is_empty());
    }

    #[test]
    fn json_lines_are_read_as_a_list_and_other_text_is_refused() {
        assert_eq!(
            parse(b"{\"a\":1}\n\n{\"b\":2}\n"),
            Some(json!([{"a": 1}, {"b": 2}]))
        );
        assert_eq!(parse(b"{\"a\":1}"), Some(json!({"a": 1})));
        assert!(parse(b"").is_none() && parse(b"a\n").is_none());
    }
}

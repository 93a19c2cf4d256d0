//! Files that commands add to the bundle. Their size and number are limited, and each path occurs
//! at most once.

use super::Recorder;
use serde_json::{Value, json};
use wp_codebox_artifacts::{ArtifactContent, ArtifactFile};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum size of one file that a command adds, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Maximum size of all files together that the commands of one run add, in bytes.
const MOST_TOTAL: usize = 64 * 1024 * 1024;
/// Maximum number of files that the commands of one run add.
const MOST_FILES: usize = 512;

impl Recorder<'_> {
    /// Adds a file to the bundle. Returns a reference to it for the command's result: {path, kind,
    /// contentType, bytes}. Text is redacted when the bundle is written.
    pub(crate) fn keep(&mut self, file: ArtifactFile) -> Result<Value, ErrorBody> {
        let bytes = size(&file);
        let refused = |why: String| {
            let message = format!("{} cannot be stored in the bundle: {why}", file.path);
            Err(ErrorBody::new(ErrorCode::OutputLimit, message))
        };
        if !is_path(&file.path)
            || self
                .evidence
                .files
                .iter()
                .any(|kept| kept.path == file.path)
        {
            return refused("its path is malformed or already used".to_owned());
        }
        if bytes > MOST_BYTES {
            return refused(format!(
                "it has {bytes} bytes; at most {MOST_BYTES} are allowed"
            ));
        }
        if self.evidence.files.len() >= MOST_FILES {
            return refused(format!(
                "the run has already stored {MOST_FILES} files, the maximum"
            ));
        }
        if self.evidence.files.iter().map(size).sum::<usize>() + bytes > MOST_TOTAL {
            return refused(format!(
                "all files of a run may have at most {MOST_TOTAL} bytes together"
            ));
        }
        let reference = json!({
            "path": file.path, "kind": file.kind, "contentType": file.media, "bytes": bytes,
        });
        self.evidence.files.push(file);
        Ok(reference)
    }
}

fn size(file: &ArtifactFile) -> usize {
    match &file.content {
        ArtifactContent::Text(text) => text.len(),
        ArtifactContent::Bytes(bytes) => bytes.len(),
        // The size is that of the JSON text which the bundle will contain.
        ArtifactContent::Document(value) => {
            serde_json::to_vec_pretty(value).map_or(usize::MAX, |bytes| bytes.len() + 1)
        }
    }
}

/// Returns whether a path is `files/…` with plain names: no `..`, no hidden file and no unusual
/// character.
fn is_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("files/") else {
        return false;
    };
    let plain = |name: &str| {
        name.as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    path.len() <= 200 && rest.contains('/') && rest.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_policy::Redactor;
    use wp_codebox_runtime::Journal;

    #[test]
    fn bundle_files_need_unique_plain_paths_and_must_fit_the_size_limits() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::create(directory.path()).unwrap();
        let redactor = Redactor::default();
        let mut emit = |_| {};
        let mut recorder = Recorder::new(journal, &redactor, 1024, &mut emit);
        let file = |path: &str, bytes: usize| ArtifactFile {
            path: path.to_owned(),
            kind: "browser-screenshot",
            media: "image/png",
            content: ArtifactContent::Bytes(vec![0; bytes]),
        };
        let kept = recorder
            .keep(file("files/browser/exec-1/1.png", 3))
            .unwrap();
        assert_eq!(kept["bytes"], 3);
        for (path, bytes) in [
            ("files/browser/exec-1/1.png", 3),
            ("files/../metadata.json", 3),
            ("files/review.json", 3),
            ("metadata.json", 3),
            ("files/browser/.hidden", 3),
            ("files/browser//x", 3),
            ("files/browser/a b", 3),
            ("files/browser/large.png", MOST_BYTES + 1),
        ] {
            let error = recorder.keep(file(path, bytes)).unwrap_err();
            assert_eq!(error.code, ErrorCode::OutputLimit, "{path}");
        }
        for number in 0..3 {
            let path = format!("files/browser/large-{number}.png");
            recorder.keep(file(&path, MOST_BYTES)).unwrap();
        }
        let last = recorder.keep(file("files/browser/large-3.png", MOST_BYTES));
        assert_eq!(last.unwrap_err().code, ErrorCode::OutputLimit);
    }
}

//! Checks the syntax of the changed PHP files in the guest of the checks, and records the result by
//! digest. An apply need not check these files again, and a reviewer sees which ones PHP refuses.

use crate::session::guest::GuestContext;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{
    EvidenceDocument, InvalidPhp, MountChanges, Node, PHP_SYNTAX_FILE, PHP_SYNTAX_KIND,
    PHP_SYNTAX_SCHEMA, PhpSyntax, sha256,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, OutputStream, Sha256Hex};
use wp_codebox_runtime::{Execution, GuestMount};

/// Program in the guest.
const PROGRAM: &str = "/opt/codebox/guest/php-syntax.php";
/// Time limit for all files.
const LIMIT: Duration = Duration::from_secs(300);
/// Most bytes that the program may print for one file: its message, as JSON.
const LINE_BYTES: u64 = 8 * 1024;
/// Number of files that the notice for the reviewer names.
const NAMED: usize = 5;

/// A PHP file that the work has added or changed.
pub(crate) struct ChangedPhp {
    /// Guest path of the file.
    path: Vec<u8>,
    sha256: Sha256Hex,
}

/// Returns the changed files whose names end with `.php`.
pub(crate) fn changed_files(
    mounts: &[GuestMount],
    changes: &[Option<MountChanges>],
) -> Vec<ChangedPhp> {
    let mut files = Vec::new();
    for (mount, changes) in mounts.iter().zip(changes) {
        for entry in changes.iter().flat_map(|changes| &changes.entries) {
            let Some(Node::File { bytes, .. }) = entry.change.after() else {
                continue;
            };
            if entry.path.ends_with(b".php") {
                files.push(ChangedPhp {
                    path: [mount.target.as_str().as_bytes(), b"/", &entry.path].concat(),
                    sha256: sha256(bytes),
                });
            }
        }
    }
    files
}

/// Checks the files in a guest in which no other program has run, and records the result. The result
/// of a program that failed or was stopped covers the files that it had checked.
pub(crate) fn check(
    guest: &mut GuestContext<'_, '_>,
    deadline: Instant,
    files: &[ChangedPhp],
) -> Result<(), ErrorBody> {
    if files.is_empty() {
        return Ok(());
    }
    let mut paths = Vec::new();
    for file in files {
        paths.extend_from_slice(&file.path);
        paths.push(0);
    }
    let execution = Execution {
        id: ExecutionId::new("php-syntax")
            .map_err(|error| ErrorBody::new(ErrorCode::Internal, error.to_string()))?,
        argv: ["php", "-n", PROGRAM].map(str::to_owned).into(),
        env: BTreeMap::new(),
        cwd: guest.run.cwd.clone(),
        stdin: Some(paths),
        output_bytes: LINE_BYTES.saturating_mul(files.len() as u64 + 1),
        stop_at: (Instant::now() + LIMIT).min(deadline),
        deadline,
    };
    let mut printed = Vec::new();
    // Not a command of the run: the document is its record.
    guest.runtime.execute(&execution, &mut |stream, bytes| {
        if let OutputStream::Stdout = stream {
            printed.extend_from_slice(bytes);
        }
    })?;
    let Some(record) = record(files, &printed) else {
        return Ok(());
    };
    if let Some(notice) = notice(&record) {
        let notice = guest.recorder.clean(&notice);
        guest.recorder.evidence.notices.push(notice);
    }
    guest.recorder.evidence.php_syntax = Some(record);
    Ok(())
}

/// Returns what the program said; `None` if it did not start.
fn record(files: &[ChangedPhp], printed: &[u8]) -> Option<PhpSyntax> {
    let mut lines = printed.split(|byte| *byte == b'\n');
    let php_version = String::from_utf8(lines.next()?.to_vec()).ok()?;
    let mut messages: BTreeMap<usize, Option<String>> = BTreeMap::new();
    for line in lines {
        if let Ok((position, message)) = serde_json::from_slice(line) {
            messages.insert(position, message);
        }
    }
    let mut record = PhpSyntax {
        schema: PHP_SYNTAX_SCHEMA.to_owned(),
        php_version,
        ..PhpSyntax::default()
    };
    for (position, file) in files.iter().enumerate() {
        match messages.remove(&position) {
            None => record.unchecked += 1,
            Some(None) => {
                record.valid.insert(file.sha256.clone());
            }
            Some(Some(message)) => record.invalid.push(InvalidPhp {
                path: String::from_utf8_lossy(&file.path).into_owned(),
                sha256: file.sha256.clone(),
                message,
            }),
        }
    }
    (!record.php_version.is_empty()).then_some(record)
}

/// Returns the sentence for the reviewer; `None` if PHP accepts every file.
fn notice(record: &PhpSyntax) -> Option<String> {
    let count = record.invalid.len();
    let named = record.invalid.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|file| format!("{}: {}", file.path, file.message))
        .collect();
    let more = match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let subject = match count {
        0 => return None,
        1 => "a changed PHP file has".to_owned(),
        _ => format!("{count} changed PHP files have"),
    };
    Some(format!(
        "{subject} a syntax error, and an apply refuses it: {}{more}",
        named.join("; ")
    ))
}

/// Returns the record as a document of the bundle.
pub(crate) fn document(record: &PhpSyntax) -> EvidenceDocument {
    EvidenceDocument {
        name: PHP_SYNTAX_FILE,
        key: "phpSyntax",
        kind: PHP_SYNTAX_KIND,
        values: vec![json!(record)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: u8) -> Vec<ChangedPhp> {
        let file = |at| ChangedPhp {
            path: format!("/wordpress/a/{at}.php").into_bytes(),
            sha256: Sha256Hex::from_bytes(&[at; 32]),
        };
        (0..count).map(file).collect()
    }

    #[test]
    fn files_without_an_answer_are_unchecked_and_lines_that_are_no_answer_are_ignored() {
        let printed = b"8.2.29\n[1,null]\nnoise\n[2,\"Parse error\"]\n[9,null]\n[0,nu";
        let record = record(&files(4), printed).unwrap();
        assert_eq!(record.php_version, "8.2.29");
        assert_eq!(record.valid, [Sha256Hex::from_bytes(&[1; 32])].into());
        assert_eq!(record.invalid.len(), 1);
        assert_eq!(record.invalid[0].path, "/wordpress/a/2.php");
        assert_eq!(record.unchecked, 2);
        let notice = notice(&record).unwrap();
        assert!(
            notice.contains("/wordpress/a/2.php: Parse error"),
            "{notice}"
        );
    }

    #[test]
    fn program_that_printed_nothing_leaves_no_record() {
        assert_eq!(record(&files(1), b""), None);
        assert!(record(&files(1), b"8.2.29\n").is_some());
    }
}

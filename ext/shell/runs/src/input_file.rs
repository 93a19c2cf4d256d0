//! Files that a caller names.

use std::io::Read;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Reads a regular file up to a size limit. `what` names it in an error.
pub fn read_file(path: &Path, most: usize, what: &str) -> Result<Vec<u8>, ErrorBody> {
    let fail = |why: String| {
        let message = format!("the {what} {} {why}", path.display());
        ErrorBody::new(ErrorCode::InputInvalid, message)
    };
    let file = std::fs::File::open(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let about = file
        .metadata()
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    if !about.is_file() {
        return Err(fail("is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    if bytes.len() > most {
        return Err(fail(format!("is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Returns the real path of the directory that contains a file. `what` names the file in an error.
pub fn directory_of(path: &Path, what: &str) -> Result<PathBuf, ErrorBody> {
    let absolute = path.canonicalize().map_err(|e| {
        let message = format!(
            "the path of the {what} {} cannot be resolved: {e}",
            path.display()
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    Ok(absolute.parent().unwrap_or(Path::new("/")).to_owned())
}

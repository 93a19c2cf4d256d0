//! Writes the files of a generated directory.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Writes a new file below a directory of the run. The caller ensures that the directory contains
/// no symbolic links.
pub(super) fn write(directory: &Path, name: &str, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let outside = || {
        std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "a file path has an empty, `.` or `..` segment or contains a NUL byte",
        )
    };
    if name.split('/').any(|s| matches!(s, "" | "." | "..")) || name.contains('\0') {
        return Err(outside());
    }
    let path = directory.join(name);
    let parent = path.parent().ok_or_else(outside)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(parent)?;
    fs::File::create_new(&path)?.write_all(content)
}

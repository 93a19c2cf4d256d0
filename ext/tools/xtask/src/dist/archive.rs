//! Packs a directory as a zip that is reproducible: equal files give equal bytes on every
//! machine.
//!
//! Entries are sorted and share one timestamp and one mode.

use crate::findings::TaskError;
use crate::tree;
use std::io::{Cursor, Write};
use std::path::Path;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Packs every file below `directory` into a zip and returns its bytes. The names of the entries begin with `prefix`.
pub fn pack(directory: &Path, prefix: &str) -> Result<Vec<u8>, TaskError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        // 1980-01-01, the earliest date in the zip format.
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for path in tree::files(directory)? {
        let name = format!("{prefix}{}", tree::shown(directory, &path));
        let bytes = std::fs::read(&path).map_err(TaskError::file(&path))?;
        archive
            .start_file(name, options)
            .and_then(|()| archive.write_all(&bytes).map_err(ZipError::from))
            .map_err(|error| TaskError::file(&path)(error.into()))?;
    }
    archive
        .finish()
        .map(Cursor::into_inner)
        .map_err(|error| TaskError::file(directory)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    fn plugin(age: u64, mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("wp-codebox.php", "<?php"),
            ("a/b.php", "<?php echo 1;"),
            ("a.txt", "text"),
        ] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let file = fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
        }
        directory
    }

    #[test]
    fn release_archive_bytes_depend_only_on_names_and_contents() {
        let one = pack(plugin(0, 0o644).path(), "codebox/").unwrap();
        assert_eq!(one, pack(plugin(86_400, 0o700).path(), "codebox/").unwrap());
        let other = plugin(0, 0o644);
        fs::write(other.path().join("a.txt"), "texT").unwrap();
        assert_ne!(one, pack(other.path(), "codebox/").unwrap());
    }

    #[test]
    fn release_archive_has_one_top_directory_and_only_regular_files() {
        let packed = pack(plugin(0, 0o755).path(), "codebox/").unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(packed)).unwrap();
        let mut names = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index(index).unwrap();
            assert_eq!(entry.unix_mode(), Some(0o100_644));
            assert_eq!(entry.last_modified(), Some(DateTime::default()));
            names.push(entry.name().unwrap().into_owned());
        }
        assert_eq!(
            names,
            ["codebox/a.txt", "codebox/a/b.php", "codebox/wp-codebox.php"]
        );
    }
}

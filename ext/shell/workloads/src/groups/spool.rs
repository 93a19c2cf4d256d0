//! Stores the result rows of a group on disk, so that memory contains only their offsets.

use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Result rows of a group in order of arrival, in an unlinked temporary file.
#[derive(Debug)]
pub struct Spool {
    file: File,
    length: u64,
    rows: Vec<Option<(u64, u64)>>,
}

impl Spool {
    /// Creates an empty spool for this number of rows.
    pub(super) fn new(rows: usize) -> io::Result<Self> {
        Ok(Self {
            file: nameless(&std::env::temp_dir())?,
            length: 0,
            rows: vec![None; rows],
        })
    }

    /// Stores a row unless its position already has one.
    pub(super) fn put(&mut self, at: usize, row: &Map<String, Value>) -> io::Result<()> {
        let bytes = serde_json::to_vec(row)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(&bytes)?;
        let place = (self.length, bytes.len() as u64);
        self.length += place.1;
        if let Some(slot) = self.rows.get_mut(at) {
            slot.get_or_insert(place);
        }
        Ok(())
    }

    /// Returns the number of stored rows.
    pub(super) fn settled(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// Returns whether the position has a row.
    pub(super) fn has(&self, at: usize) -> bool {
        self.rows.get(at).is_some_and(Option::is_some)
    }

    /// Writes the row at a position, if there is one.
    pub(super) fn row(&self, at: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some((start, length)) = self.rows.get(at).copied().flatten() else {
            return Ok(());
        };
        (&self.file).seek(SeekFrom::Start(start))?;
        io::copy(&mut (&self.file).take(length), out)?;
        out.write_all(b"\n")
    }

    /// Writes one JSON document: the given members, and as `runs` the rows ordered by position.
    pub fn document(
        &mut self,
        members: &Map<String, Value>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        out.write_all(b"{\n")?;
        for (name, value) in members {
            serde_json::to_writer(&mut out, name)
                .and_then(|()| {
                    out.write_all(b": ").map_err(serde_json::Error::io)?;
                    serde_json::to_writer(&mut out, value)
                })
                .map_err(io::Error::from)?;
            out.write_all(b",\n")?;
        }
        out.write_all(b"\"runs\": [")?;
        let mut first = true;
        for (at, length) in self.rows.iter().flatten() {
            out.write_all(if first { b"\n" } else { b",\n" })?;
            first = false;
            self.file.seek(SeekFrom::Start(*at))?;
            io::copy(&mut (&self.file).take(*length), &mut out)?;
        }
        out.write_all(b"\n]\n}\n")?;
        out.flush()
    }
}

/// Creates an unlinked file, which the kernel removes when it is closed.
fn nameless(directory: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o600)) {
        return Ok(File::from(fd));
    }
    // Fallback for file systems without O_TMPFILE.
    let path = directory.join(format!(".wp-codebox-rows-{}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Writes a file and puts it in place with one rename, so that no reader sees a part of it.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("it has no file name"))?;
    let temporary = path.with_file_name(format!(
        ".{}.{}.tmp",
        name.to_string_lossy(),
        std::process::id()
    ));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    let written = write(&mut file)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn runs_of_a_group_result_are_in_the_order_of_their_positions_and_not_of_arrival() {
        let mut spool = Spool::new(3).unwrap();
        let row = |n: usize| {
            json!({"n": n, "text": "x\n".repeat(n)})
                .as_object()
                .unwrap()
                .clone()
        };
        for at in [2, 0, 1] {
            assert!(!spool.has(at));
            spool.put(at, &row(at)).unwrap();
        }
        assert_eq!(spool.settled(), 3);
        let members = json!({"a": 1, "b": {"c": []}});
        let mut out = Vec::new();
        spool
            .document(members.as_object().unwrap(), &mut out)
            .unwrap();
        let read: Value = serde_json::from_slice(&out).unwrap();
        let rows: Vec<Value> = (0..3).map(|n| Value::Object(row(n))).collect();
        assert_eq!(read, json!({"a": 1, "b": {"c": []}, "runs": rows}));
    }

    #[test]
    fn failed_file_replacement_does_not_change_the_old_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("answer.json");
        replace(&path, |out| out.write_all(b"one")).unwrap();
        let failed = replace(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}

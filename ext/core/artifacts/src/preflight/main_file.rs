//! Finds deletions of the file by which WordPress knows a plugin. WordPress deactivates a plugin whose
//! main file is gone or has another name.

use crate::changed_files::raw_relative;
use crate::dirfd::Dir;
use crate::risks::PathRisk;
use std::fs::File;
use std::io::Read;
use wp_codebox_contracts::{ChangeKind, ChangedFile};

/// Number of bytes in which WordPress looks for the header of a plugin.
const HEADER_BYTES: u64 = 8 * 1024;

/// Returns the risk of an entry that deletes or renames the main file of a plugin in the target
/// directory: a directory with one plugin, or one with many.
pub(super) fn deletion(dir: &Dir, entry: &ChangedFile) -> Option<PathRisk> {
    let path = raw_relative(entry);
    let depth = path.iter().filter(|byte| **byte == b'/').count();
    if entry.status != ChangeKind::Deleted || depth > 1 || !path.ends_with(b".php") {
        return None;
    }
    let (fd, _) = dir.open_file(&path).ok()?;
    let mut head = Vec::new();
    File::from(fd)
        .take(HEADER_BYTES)
        .read_to_end(&mut head)
        .ok()?;
    has_plugin_header(&head).then(|| PathRisk {
        path: entry.path.clone(),
        flag: "plugin-main-file",
        sentence: "WordPress deactivates a plugin whose main file is deleted or renamed.",
        confirm: true,
    })
}

fn has_plugin_header(head: &[u8]) -> bool {
    const FIELD: &[u8] = b"plugin name:";
    head.split(|byte| matches!(byte, b'\n' | b'\r'))
        .any(|line| {
            let line = line.trim_ascii_start();
            let line = match line.get(..5) {
                Some(tag) if tag.eq_ignore_ascii_case(b"<?php") => &line[5..],
                Some(_) | None => line,
            };
            let begin = line
                .iter()
                .position(|byte| !matches!(byte, b' ' | b'\t' | b'/' | b'*' | b'#' | b'@'));
            begin
                .and_then(|begin| line[begin..].get(..FIELD.len()))
                .is_some_and(|field| field.eq_ignore_ascii_case(FIELD))
        })
}

#[cfg(test)]
mod tests {
    use super::has_plugin_header;

    #[test]
    fn plugin_header_is_found_where_wordpress_finds_it() {
        for head in [
            "<?php\n/*\nPlugin Name: A\n*/",
            "<?php /* Plugin Name: A */",
            "<?php\r\n/**\r\n * plugin name: A",
            "<?php\r/*\rPlugin Name: A\r*/",
        ] {
            assert!(has_plugin_header(head.as_bytes()), "{head}");
        }
        for head in [
            "",
            "<?php\n// The Plugin Name: A",
            "<?php\n/* Theme Name: A */",
            "<?php $x = 'Plugin Name';",
        ] {
            assert!(!has_plugin_header(head.as_bytes()), "{head}");
        }
    }
}

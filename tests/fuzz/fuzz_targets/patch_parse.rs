//! The parser and the filter of patches of unknown origin.
//!
//! Parses any bytes as a patch and filters the result by approvals. Asserts that blocks are in
//! order with only blank lines between them, that the filtered patch parses to the approved blocks
//! unchanged, that a filter without approvals leaves nothing, and that no path leaves the tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use wp_codebox_artifacts::{Block, filter_patch, parse_patch, quote_name};
use wp_codebox_contracts::{ChangeKind, ChangedFile, EntryType, GuestPath};

type Shape = (
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
);

fn shape(block: &Block) -> Shape {
    let Block {
        old_name,
        new_name,
        old_mode,
        new_mode,
        range: _,
    } = block.clone();
    (old_name, new_name, old_mode, new_mode)
}

/// The entry of changed-files for a file name, with the modes that the name's patch blocks have.
fn entry(name: &[u8], blocks: &[&Block]) -> ChangedFile {
    type Side = fn(&Block) -> (&Option<Vec<u8>>, &Option<String>);
    let mode = |side: Side| {
        blocks
            .iter()
            .map(|block| side(block))
            .find(|(found, _)| found.as_deref() == Some(name))
            .map(|(_, mode)| mode.clone().unwrap_or_else(|| "100644".to_owned()))
    };
    let (text, encoding) = match std::str::from_utf8(name) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (quote_name(name), Some("git-quoted".to_owned())),
    };
    ChangedFile {
        path: format!("/workspace/x/{text}"),
        relative_path: text.clone(),
        status: ChangeKind::Modified,
        entry_type: EntryType::File,
        before_sha256: None,
        before_mode: mode(|block| (&block.old_name, &block.old_mode)),
        after_sha256: None,
        after_mode: mode(|block| (&block.new_name, &block.new_mode)),
        binary: false,
        insertions: None,
        deletions: None,
        mount_index: 0,
        mount_target: GuestPath::new("/workspace/x").expect("a guest path"),
        patch_name: text,
        patch_path: String::new(),
        path_encoding: encoding,
        renamed_from: None,
    }
}

fuzz_target!(|patch: &[u8]| {
    let Ok(blocks) = parse_patch(patch) else {
        assert!(filter_patch(patch, &[]).is_err());
        return;
    };
    let mut at = 0;
    let mut whole = Vec::new();
    for block in &blocks {
        assert!(at <= block.range.start && block.range.start < block.range.end);
        assert!(
            patch[at..block.range.start]
                .iter()
                .all(|byte| *byte == b'\n')
        );
        whole.extend_from_slice(&patch[block.range.clone()]);
        if !whole.ends_with(b"\n") {
            whole.push(b'\n');
        }
        at = block.range.end;
        for name in [&block.old_name, &block.new_name].into_iter().flatten() {
            assert!(!name.is_empty() && !name.starts_with(b"/") && !name.contains(&0));
            assert!(
                name.split(|b| *b == b'/')
                    .all(|part| part != b".." && part != b".")
            );
        }
        assert!(block.old_name.is_some() || block.new_name.is_some());
    }
    assert!(patch[at..].iter().all(|byte| *byte == b'\n'));
    let again = parse_patch(&whole).expect("blocks read alone as they do together");
    assert!(again.iter().map(shape).eq(blocks.iter().map(shape)));

    assert_eq!(filter_patch(patch, &[]).as_deref(), Ok(&b""[..]));
    let mut by_name: BTreeMap<&[u8], Vec<&Block>> = BTreeMap::new();
    for block in &blocks {
        let mut names: Vec<&[u8]> = [&block.old_name, &block.new_name]
            .into_iter()
            .flatten()
            .map(Vec::as_slice)
            .collect();
        names.dedup();
        for name in names {
            by_name.entry(name).or_default().push(block);
        }
    }
    for (name, own) in &by_name {
        let Ok(kept) = filter_patch(patch, &[entry(name, own)]) else {
            continue;
        };
        let kept = parse_patch(&kept).expect("a filtered patch is a patch");
        assert_eq!(kept.len(), own.len());
        for block in &kept {
            for found in [&block.old_name, &block.new_name].into_iter().flatten() {
                assert_eq!(found, name, "a block that was not approved");
            }
        }
    }
    let entries: Vec<_> = by_name.iter().map(|(name, own)| entry(name, own)).collect();
    if let Ok(kept) = filter_patch(patch, &entries) {
        assert_eq!(kept, whole);
    }
});

//! Tests that overlay layers are read and written as the kernel's overlayfs expects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod namespaces;
mod trees;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use trees::*;
use wp_codebox_artifacts::*;

/// Turns one tree into another like ordinary programs: removes and writes entries, and sometimes
/// replaces a whole directory.
fn transform(root: &Path, before: &Tree, after: &Tree, random: &mut Random) {
    for path in before.keys() {
        if let Some(at) = path.iter().position(|b| *b == b'/')
            && random.chance(15)
        {
            let _ = fs::remove_dir_all(on(root, &path[..at]));
        }
    }
    let now = |path: &[u8]| fs::symlink_metadata(on(root, path)).ok();
    for (path, node) in before {
        if after.get(path) == Some(node) {
            continue;
        }
        let mut full = on(root, path);
        match now(path) {
            Some(meta) if meta.is_dir() => {
                let _ = fs::remove_dir(&full);
            }
            Some(_) => fs::remove_file(&full).unwrap(),
            None => {}
        }
        // Removes directories that became empty, unless the new tree has them.
        while full.pop() && full != root && fs::remove_dir(&full).is_ok() {}
    }
    for (path, node) in after {
        let same = match (now(path), node) {
            (Some(meta), Node::Directory) => meta.is_dir(),
            (Some(_), _) => before.get(path) == Some(node),
            (None, _) => false,
        };
        if !same {
            write_node(root, path, node);
        }
    }
}

#[test]
fn captured_changes_and_the_layer_written_from_them_equal_the_kernels_overlay_view() {
    if !namespaces::entered(
        "captured_changes_and_the_layer_written_from_them_equal_the_kernels_overlay_view",
        "overlay",
    ) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    namespaces::mount("tmpfs", "size=256m", scratch.path());
    let mut changed = 0;
    for number in 0..200_u64 {
        let root = scratch.path().join(number.to_string());
        let [lower, upper, work, merged, layer] =
            ["lower", "upper", "work", "merged", "layer"].map(|name| root.join(name));
        for directory in [&lower, &upper, &work, &merged, &layer] {
            fs::create_dir_all(directory).unwrap();
        }
        let random = &mut Random(number ^ 0x0e71a);
        let before = baseline(random);
        let after = edit(random, &before);
        write_tree(&lower, &before);
        let options = format!(
            "userxattr,lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        namespaces::mount("overlay", &options, &merged);
        transform(&merged, &before, &after, random);
        assert_eq!(
            read_tree(&merged),
            after,
            "the test's own step, case {number}"
        );
        namespaces::unmount(&merged);

        let changes = capture(
            Dir::open(&lower).unwrap().as_fd(),
            Dir::open(&upper).unwrap().as_fd(),
            &ExcludeRules::default(),
            &CaptureLimits::default(),
        )
        .unwrap();
        assert_eq!(changes.omitted, []);
        // Applies the captured changes to the tree in memory.
        let mut tree = before.clone();
        for entry in &changes.entries {
            if entry.change.before().is_some() {
                assert_eq!(
                    tree.remove(&entry.path).as_ref(),
                    entry.change.before(),
                    "{number}"
                );
            }
        }
        for entry in &changes.entries {
            if let Some(node) = entry.change.after() {
                tree.insert(entry.path.clone(), node.clone());
            }
        }
        assert_eq!(normalised(tree), after, "captured, case {number}");
        changed += changes.entries.len();

        // Writes the captured changes as a lower layer, which the kernel then mounts.
        write_layer(&changes, Dir::open(&layer).unwrap().as_fd()).unwrap();
        let options = format!("userxattr,lowerdir={}:{}", layer.display(), lower.display());
        namespaces::mount("overlay", &options, &merged);
        assert_eq!(read_tree(&merged), after, "layered, case {number}");
        namespaces::unmount(&merged);
        fs::remove_dir_all(&root).unwrap();
    }
    println!("200 overlays, {changed} changes");
    assert!(changed > 300);
}

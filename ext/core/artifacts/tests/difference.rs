//! Comparison of whole trees, which must report the same changes as an overlay's upper directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod trees;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use trees::*;
use wp_codebox_artifacts::*;

fn difference(
    before: &Path,
    after: &Path,
    limits: &CaptureLimits,
) -> Result<MountChanges, CaptureError> {
    capture_difference(
        Dir::open(before).unwrap().as_fd(),
        Dir::open(after).unwrap().as_fd(),
        &ExcludeRules::new(&["vendor".to_owned()]),
        limits,
    )
}

#[test]
fn difference_of_two_random_trees_applied_as_layer_over_the_first_gives_the_second() {
    let scratch = tempfile::tempdir().unwrap();
    let mut changed = 0;
    for number in 0..300_u64 {
        let root = scratch.path().join(number.to_string());
        let [left, right, layer] = ["left", "right", "layer"].map(|name| root.join(name));
        for directory in [&left, &right, &layer] {
            fs::create_dir_all(directory).unwrap();
        }
        let random = &mut Random(number ^ 0x00d1_ff00);
        let before = baseline(random);
        let after = edit(random, &before);
        write_tree(&left, &before);
        write_tree(&right, &after);
        let changes = difference(&left, &right, &CaptureLimits::default()).unwrap();
        assert_eq!(changes.omitted, []);
        let mut tree = before.clone();
        for entry in &changes.entries {
            if let Some(node) = entry.change.before() {
                assert_eq!(tree.remove(&entry.path).as_ref(), Some(node), "{number}");
            }
            assert_ne!(entry.change.before(), entry.change.after(), "{number}");
        }
        for entry in &changes.entries {
            if let Some(node) = entry.change.after() {
                tree.insert(entry.path.clone(), node.clone());
            }
        }
        assert_eq!(normalised(tree), after, "captured, case {number}");
        changed += changes.entries.len();
        // The change written as a layer and applied to the baseline.
        let layer = Dir::open(&layer).unwrap();
        write_layer(&changes, layer.as_fd()).unwrap();
        apply_layer(layer.as_fd(), Dir::open(&left).unwrap().as_fd()).unwrap();
        assert_eq!(read_tree(&left), after, "laid over, case {number}");
        fs::remove_dir_all(&root).unwrap();
    }
    assert!(changed > 300, "{changed}");
}

#[test]
fn difference_of_two_directories_counts_only_changes_towards_limits_and_omits_excluded_names() {
    let scratch = tempfile::tempdir().unwrap();
    let (left, right) = (scratch.path().join("left"), scratch.path().join("right"));
    for side in [&left, &right] {
        fs::create_dir_all(side.join("vendor/deep")).unwrap();
        for number in 0..40 {
            fs::write(side.join(format!("{number}.txt")), vec![b'x'; 10_000]).unwrap();
        }
    }
    let limits = CaptureLimits {
        entries: 2,
        total_bytes: 30_000,
        ..CaptureLimits::default()
    };
    let same = difference(&left, &right, &limits).unwrap();
    assert_eq!(same.entries, [], "equal files count for nothing");
    assert_eq!(same.omitted.len(), 1);
    assert_eq!(same.omitted[0].reason, OmitReason::Excluded);
    // Size and times are equal, so the comparison must read the bytes.
    let file = right.join("7.txt");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, [vec![b'x'; 9_999], vec![b'y']].concat()).unwrap();
    fs::File::options()
        .append(true)
        .open(&file)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(difference(&left, &right, &limits).unwrap().entries.len(), 1);
    for name in ["a", "b", "c"] {
        fs::write(right.join(name), "").unwrap();
    }
    let error = difference(&left, &right, &limits).unwrap_err();
    assert!(
        matches!(
            error,
            CaptureError::Limit {
                what: "entries",
                ..
            }
        ),
        "{error}"
    );
    for name in ["a", "b", "c"] {
        fs::remove_file(right.join(name)).unwrap();
    }
    fs::write(right.join("big"), vec![0; 30_001]).unwrap();
    let error = difference(&left, &right, &limits).unwrap_err();
    assert!(
        matches!(error, CaptureError::Limit { what: "bytes", .. }),
        "{error}"
    );
}

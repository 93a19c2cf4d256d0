//! Compares what the code gives with a recorded file below `tests/golden/`.
//!
//! Tests of several crates include this file by `#[path]`.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the checkout, from a crate in a floor of `ext/`.
pub fn checkout() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../..")
}

/// Fails where `actual` is not what `name` holds. `UPDATE_GOLDEN=1` writes the file instead.
pub fn compare(name: &str, actual: &str) {
    let path = checkout().join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        return fs::write(&path, actual).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    if recorded == actual {
        return;
    }
    let same = |(recorded, actual): &(&str, &str)| recorded == actual;
    let line = recorded
        .lines()
        .zip(actual.lines())
        .take_while(same)
        .count();
    panic!(
        "tests/golden/{name} differs from line {}:\n- {}\n+ {}\nWhere the change is intended: \
         UPDATE_GOLDEN=1 cargo test -p {} {}",
        line + 1,
        recorded.lines().nth(line).unwrap_or("(end of file)"),
        actual.lines().nth(line).unwrap_or("(end of file)"),
        env!("CARGO_PKG_NAME"),
        // The name of the test.
        std::thread::current().name().unwrap_or_default(),
    );
}

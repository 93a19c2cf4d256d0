//! Embeds the JSON Schemas of `abilities/schemas/`, so that `wp-codebox schema` needs no files.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let directory = root.join("../../../abilities/schemas").canonicalize()?;
    println!("cargo:rerun-if-changed={}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let text = path.to_string_lossy();
        table.push_str(&format!("    include_str!({text:?}),\n"));
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("schemas.rs"), table)
}

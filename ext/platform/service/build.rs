//! Embeds the JSON Schemas of `abilities/schemas/`, from which the OpenAPI document takes its
//! components.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Embedded texts instead of `include_str!`: cargo caches the output of this script, and another
    // checkout with the same CARGO_TARGET_DIR would otherwise read the files of this one.
    let directory = Path::new("../../../abilities/schemas");
    println!("cargo:rerun-if-changed={}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".v1.schema.json").unwrap_or(&name);
        let text = fs::read_to_string(&path)?;
        table.push_str(&format!("    ({name:?}, {text:?}),\n"));
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("schemas.rs"), table)
}

//! Embeds the flattened JSON Schemas of `abilities/schemas/` and their digest.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, error::Error, fs};
use wp_codebox_schema_sources::{Sources, contract_digest};

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("abilities/schemas: {error}");
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), Box<dyn Error>> {
    // A relative path, and embedded texts instead of `include_str!`: cargo caches the output of this
    // script, and another checkout with the same CARGO_TARGET_DIR would otherwise read the files of
    // this one.
    let directory = Path::new("../../../abilities/schemas");
    println!("cargo:rerun-if-changed={}", directory.display());
    let schemas = Sources::read(directory)?.flatten()?;
    let mut table = String::from("&[\n");
    for schema in &schemas {
        table.push_str(&format!("    ({:?}, {:?}),\n", schema.name(), schema.text));
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("schemas.rs"), table)?;
    println!(
        "cargo:rustc-env=WP_CODEBOX_CONTRACT_DIGEST={}",
        contract_digest(&schemas)
    );
    Ok(())
}

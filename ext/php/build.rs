//! Refuses a thread-safe PHP, embeds the contract digest and links the extension so that it is never
//! unmapped.
//!
//! Contract digest: sha256 over, for each file of `abilities/schemas/*.json` sorted
//! bytewise by file name: the file name, `\n`, the length of the file in decimal,
//! `\n`, the bytes, `\n`. `cargo xtask` writes the same value into the plugin.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    refuse_thread_safe_php()?;
    // PHP unloads modules with dlclose at shutdown; thread-local destructors of
    // the extension would then run in unmapped memory.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");

    // A relative path: cargo caches the printed path, and another checkout with the same
    // CARGO_TARGET_DIR would otherwise read the files of this checkout.
    let schemas = Path::new("../../abilities/schemas");
    println!("cargo:rerun-if-changed={}", schemas.display());
    println!(
        "cargo:rustc-env=WP_CODEBOX_CONTRACT_DIGEST={}",
        contract_digest(schemas)?
    );
    Ok(())
}

/// The extension keeps its state in statics of the process, which threads of one PHP would share.
fn refuse_thread_safe_php() -> io::Result<()> {
    println!("cargo:rerun-if-env-changed=PHP");
    let php = env::var_os("PHP").unwrap_or_else(|| "php".into());
    let asked = Command::new(&php)
        .args(["-n", "-r", "echo PHP_ZTS;"])
        .output()?;
    if asked.stdout == b"1" {
        return Err(io::Error::other(format!(
            "PHP {} is a thread-safe build (ZTS), which is not supported; set PHP and PHP_CONFIG to a PHP without thread safety (NTS)",
            php.display()
        )));
    }
    Ok(())
}

fn contract_digest(directory: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            files.push(path);
        }
    }
    files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    if files.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{} holds no schema", directory.display()),
        ));
    }
    let mut hash = Sha256::new();
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&path)?;
        hash.update(format!("{name}\n{}\n", bytes.len()));
        hash.update(&bytes);
        hash.update(b"\n");
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

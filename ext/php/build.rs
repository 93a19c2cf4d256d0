//! Refuses a thread-safe PHP and links the extension so that it is never unmapped.

use std::process::Command;
use std::{env, io};

fn main() -> io::Result<()> {
    refuse_thread_safe_php()?;
    // PHP unloads modules with dlclose at shutdown; thread-local destructors of
    // the extension would then run in unmapped memory.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
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

//! Finds the browser program on the host.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Paths where the browser is searched when the settings name no path.
const PLACES: &[&str] = &["/usr/bin/chromium", "/usr/bin/chromium-browser"];
/// Host directories that every guest sees, so that programs in them need no extra mount.
const SYSTEM: &[&str] = &["/usr", "/bin", "/lib", "/lib64"];

/// The browser program of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chromium {
    /// Path of the executable itself, not of a wrapper script.
    pub program: String,
    /// Host directory of the program, which the guest must mount; `None` if every guest sees it
    /// anyway.
    pub directory: Option<String>,
}

/// Finds the browser: `named` if given, otherwise the first default path that exists.
pub fn discover(named: Option<&str>) -> Result<Chromium, ErrorBody> {
    let found = match named {
        Some(path) => program(Path::new(path)),
        None => PLACES
            .iter()
            .find(|path| Path::new(path).exists())
            .ok_or_else(|| format!("none of these programs exists: {}", PLACES.join(", ")))
            .and_then(|path| program(Path::new(path))),
    };
    let program = found.map_err(|why| {
        ErrorBody::new(ErrorCode::BrowserUnavailable, format!("no browser is available: {why}"))
            .hint("install Chromium (Debian: apt-get install chromium), or name its program with --browser or WP_CODEBOX_BROWSER")
    })?;
    let inside = SYSTEM
        .iter()
        .any(|directory| program.starts_with(directory));
    let directory = match (inside, program.parent()) {
        (false, Some(parent)) => Some(parent.to_string_lossy().into_owned()),
        _ => None,
    };
    Ok(Chromium {
        program: program.to_string_lossy().into_owned(),
        directory,
    })
}

/// Returns the executable at a path. Distributions install a wrapper script there that reads files
/// of `/etc`, which no guest has; this returns the program behind the script.
fn program(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let real = path.canonicalize().map_err(|e| format!("{shown}: {e}"))?;
    let mut begin = [0_u8; 4];
    let read = std::fs::File::open(&real)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut begin));
    read.map_err(|e| format!("{shown}: {e}"))?;
    if begin == *b"\x7fELF" {
        return Ok(real);
    }
    let name = real.file_name().unwrap_or_default();
    let behind = Path::new("/usr/lib").join(name).join(name);
    if begin.starts_with(b"#!") && behind.is_file() {
        return Ok(behind);
    }
    Err(format!(
        "{shown} is not an executable program, and neither is {}",
        behind.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chromium_wrapper_script_is_resolved_to_the_browser_executable() {
        if Path::new("/usr/bin/chromium").exists() {
            let found = discover(None).unwrap();
            assert_eq!(found.program, "/usr/lib/chromium/chromium");
            assert_eq!(found.directory, None);
        }
        for named in ["/nonexistent", "/etc/passwd", "/usr/bin/ldd"] {
            let error = discover(Some(named)).unwrap_err();
            assert_eq!(error.code, ErrorCode::BrowserUnavailable);
            assert!(error.hints[0].contains("--browser"), "{named}");
        }
        // Any executable is accepted here; whether it is a browser shows only when it is started.
        assert_eq!(discover(Some("/usr/bin/env")).unwrap().directory, None);
    }
}

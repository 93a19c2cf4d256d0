//! Finds the browser program on the host.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Paths where the browser is searched when the settings name no path. The headless shell comes
/// first: it has the same engine without the user interface, and a probe of one page takes a third
/// of the processor time.
const PLACES: &[&str] = &[
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
];
/// Directories in which distributions install the programs behind their wrapper scripts.
const BEHIND_SCRIPTS: &[&str] = &["/usr/lib/chromium", "/usr/lib/chromium-browser"];
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
            .hint("install Chromium (Debian: apt-get install chromium-headless-shell), or name its program with --browser or WP_CODEBOX_BROWSER")
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
    let mut behind = BEHIND_SCRIPTS
        .iter()
        .map(|directory| Path::new(directory).join(name));
    if let Some(found) = behind.find(|path| path.is_file())
        && begin.starts_with(b"#!")
    {
        return Ok(found);
    }
    Err(format!(
        "{shown} is not an executable program, and no program of its name is in {}",
        BEHIND_SCRIPTS.join(" or ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_behind_a_chromium_script_is_found_and_another_script_or_non_executable_is_refused() {
        for name in ["chromium", "chromium-headless-shell"] {
            let script = format!("/usr/bin/{name}");
            if Path::new(&script).exists() {
                let found = discover(Some(&script)).unwrap();
                assert_eq!(found.program, format!("/usr/lib/chromium/{name}"));
                assert_eq!(found.directory, None);
            }
        }
        if let Some(first) = PLACES.iter().find(|path| Path::new(path).exists()) {
            assert_eq!(discover(None), discover(Some(first)));
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

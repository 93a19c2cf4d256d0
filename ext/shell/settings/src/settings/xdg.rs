//! Directories of a user by the XDG base directory specification.

use std::path::PathBuf;

/// Returns the directory that an XDG variable names, else `below_home` in the user's home
/// directory; `None` if neither is known.
pub(super) fn xdg(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The specification requires that a relative path is ignored.
    let given = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    given.or_else(|| {
        let home = std::env::home_dir().filter(|home| home.is_absolute())?;
        Some(home.join(below_home))
    })
}

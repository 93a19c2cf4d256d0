//! Directories of the host that callers of the service may name.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Real paths of the directories below which a caller may name a directory; without any, a caller
/// can name no directory. A directory that a profile names need not be below one of them, because
/// the operator of this machine wrote the profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceRoots(Vec<PathBuf>);

impl SourceRoots {
    /// Reads `--source-root`.
    ///
    /// # Errors
    /// `wp_codebox_config_invalid` when one is not a directory.
    pub(crate) fn new(given: &[PathBuf]) -> Result<Self, ErrorBody> {
        let roots = given.iter().map(|root| real_directory(root));
        Ok(Self(roots.collect::<Result<_, _>>()?))
    }

    /// Returns the real path of a directory that a caller named. The run gets this real path, so
    /// changing a symbolic link of the given path later has no effect.
    ///
    /// # Errors
    /// `wp_codebox_mount_denied`, with the same sentence for a missing directory and for one
    /// outside, so that a caller cannot find out which paths exist.
    pub(crate) fn check(&self, source: &str) -> Result<String, ErrorBody> {
        let denied = |why: &str| {
            let message = format!("the directory {source:?} of this machine cannot be used: {why}");
            ErrorBody::new(ErrorCode::MountDenied, message)
        };
        if !source.starts_with('/') {
            return Err(denied("give its absolute path"));
        }
        let outside = || {
            denied(
                "it is not below a directory that the operator opens for callers (wp-codebox serve --source-root)",
            )
        };
        let real = std::fs::canonicalize(source).map_err(|_| outside())?;
        if !self.0.iter().any(|root| real.starts_with(root)) {
            return Err(outside());
        }
        real.to_str()
            .map(str::to_owned)
            .ok_or_else(|| denied("its path is not valid UTF-8"))
    }
}

fn real_directory(root: &Path) -> Result<PathBuf, ErrorBody> {
    let unusable = |why: &str| {
        let message = format!("--source-root {}: {why}", root.display());
        ErrorBody::new(ErrorCode::ConfigInvalid, message)
    };
    let real = std::fs::canonicalize(root).map_err(|e| unusable(&e.to_string()))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(unusable("it is not a directory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn caller_may_name_a_directory_below_a_root_but_no_link_out_of_it_and_no_missing_path() {
        let temp = tempfile::tempdir().unwrap();
        let (open, closed) = (temp.path().join("open"), temp.path().join("closed"));
        for directory in [open.join("shop"), closed.clone()] {
            fs::create_dir_all(directory).unwrap();
        }
        symlink(&closed, open.join("link")).unwrap();
        let roots = SourceRoots::new(std::slice::from_ref(&open)).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let shop = open.join("shop").canonicalize().unwrap();
        assert_eq!(roots.check(&text(&open.join("shop"))).unwrap(), text(&shop));
        let outside = roots.check(&text(&closed)).unwrap_err();
        assert_eq!(outside.code, ErrorCode::MountDenied);
        let reason = |error: &ErrorBody| error.message.rsplit_once(": ").unwrap().1.to_owned();
        for name in ["link", "missing", "../closed"] {
            let error = roots.check(&text(&open.join(name))).unwrap_err();
            assert_eq!(reason(&error), reason(&outside), "{name}");
        }
        assert!(roots.check("open/shop").is_err());
        assert!(SourceRoots::default().check(&text(&shop)).is_err());
        assert!(SourceRoots::new(&[open.join("missing")]).is_err());
    }
}

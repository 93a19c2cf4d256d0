//! The cache of WordPress cores: `<cache>/wordpress/<version>/`, read-only and shared by all runs.
//!
//! This module reads the cache, and needs no lock for that: the module `store` renames only
//! complete cores to the name of their version, and they never change afterwards.

use super::layout;
use super::version::Version;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorBody};

/// File of the cache that contains the default version.
pub(super) const CURRENT: &str = "current";
/// File in a cached core that contains its origin. WordPress has no file with this name.
pub(super) const RECORD: &str = ".wp-codebox-core.json";
/// Maximum size of [`CURRENT`] and of [`RECORD`] in bytes.
const SMALL: u64 = 4096;

/// The cache of cores.
#[derive(Debug, Clone)]
pub struct Cores {
    pub(super) root: PathBuf,
}

/// An installed core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// Version that the core itself states.
    pub version: String,
    /// Directory of the core.
    pub path: PathBuf,
    /// Origin: `wordpress.org`, the npm package, or the path of the zip or directory.
    pub source: String,
    /// Time of the install, in UTC, RFC 3339.
    pub installed_at: String,
    /// Whether runs use this core by default.
    pub current: bool,
}

/// Content of [`RECORD`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) source: String,
    pub(super) installed_at: String,
}

/// Reason why the cache cannot be used.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
pub(super) enum CacheError {
    /// Another user can change the cache.
    #[error("the cache {path:?} {why}, so another user could change the WordPress cores in it")]
    #[code(
        ConfigInvalid,
        hint = "remove it, or make it a directory of yours that only you may write"
    )]
    Untrusted { path: PathBuf, why: &'static str },
    /// A file or directory of the cache cannot be read or written.
    #[error("the cache of WordPress cores cannot be used: {step} {path:?}: {source}")]
    #[code(
        WordpressUnavailable,
        hint = "make the directory writable, free space on its disk, or set XDG_CACHE_HOME to another one (not for root)"
    )]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path of the core's version exists, but is not a complete core.
    #[error(
        "{path:?} exists but contains no complete WordPress core; remove it, then install again"
    )]
    #[code(ConfigInvalid, hint = "remove it and install again")]
    Occupied { path: PathBuf },
    /// No such version is in the cache.
    #[error("WordPress {version} is not installed")]
    #[code(WordpressUnavailable)]
    NotInstalled { version: String },
}

impl CacheError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::NotInstalled { version } => body
                .hint(format!("wp-codebox wordpress install {version}"))
                .hint("wp-codebox wordpress list"),
            _ => body,
        }
    }
}

pub(super) fn io_error<'p>(
    step: &'static str,
    path: &'p Path,
) -> impl Fn(io::Error) -> CacheError + 'p {
    move |source| CacheError::Io {
        step,
        path: path.to_owned(),
        source,
    }
}

impl Cores {
    /// Returns the cores of a cache directory, which need not exist.
    #[must_use]
    pub fn new(cache: &Path) -> Self {
        Self {
            root: cache.join("wordpress"),
        }
    }

    /// Lists the installed cores, newest version first.
    ///
    /// # Errors
    /// If another user can change the cache, or it cannot be read.
    pub fn list(&self) -> Result<Vec<Core>, ErrorBody> {
        self.installed().map_err(ErrorBody::from)
    }

    /// Returns the directory of an installed core: of exactly this version, or of the newest
    /// release of a series such as `6.9`. Without a version it is that of the default core, or of
    /// the newest if no default was chosen or it was removed.
    #[must_use]
    pub fn find(&self, version: Option<&str>) -> Option<PathBuf> {
        self.core(version).ok()?.map(|core| core.path)
    }

    /// Returns the installed core that [`Self::find`] describes.
    pub(super) fn core(&self, version: Option<&str>) -> Result<Option<Core>, CacheError> {
        let mut cores = self.installed()?;
        let Some(wanted) = version else {
            return Ok(cores.into_iter().find(|core| core.current));
        };
        let is_release = |core: &Core| {
            Version::parse(&core.version).is_some_and(|version| version.is_release_of(wanted))
        };
        let exact = cores.iter().position(|core| core.version == wanted);
        let found = exact.or_else(|| cores.iter().position(is_release));
        Ok(found.map(|at| cores.swap_remove(at)))
    }

    /// Returns the core of exactly this version.
    pub(super) fn exactly(&self, version: &Version) -> Result<Option<Core>, CacheError> {
        let mut cores = self.installed()?;
        let found = cores
            .iter()
            .position(|core| core.version == version.as_str());
        Ok(found.map(|at| cores.swap_remove(at)))
    }

    /// Returns the core with the newest version.
    pub(super) fn newest(&self) -> Result<Option<Core>, CacheError> {
        Ok(self.installed()?.into_iter().next())
    }

    /// Returns all complete cores, newest version first.
    fn installed(&self) -> Result<Vec<Core>, CacheError> {
        if self.trusted()? == Existence::Missing {
            return Ok(Vec::new());
        }
        let read = io_error("read", &self.root);
        let mut versions = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(&read)? {
            let name = entry.map_err(&read)?.file_name();
            let version = name.to_str().and_then(Version::parse);
            versions.extend(version.filter(|version| self.is_complete(version)));
        }
        versions.sort_unstable_by(|one, other| other.cmp(one));
        let chosen = self
            .read_small(CURRENT)
            .and_then(|text| Version::parse(text.trim_end()))
            .filter(|chosen| versions.contains(chosen))
            .or_else(|| versions.first().cloned());
        let core = |version: &Version| {
            let text = self.read_small(&format!("{}/{RECORD}", version.as_str()));
            let record = text.and_then(|text| serde_json::from_str::<Record>(&text).ok());
            let unknown = || Record {
                source: "unknown".to_owned(),
                installed_at: "unknown".to_owned(),
            };
            let record = record.unwrap_or_else(unknown);
            Core {
                version: version.as_str().to_owned(),
                path: self.path_of(version),
                source: record.source,
                installed_at: record.installed_at,
                current: chosen.as_ref() == Some(version),
            }
        };
        Ok(versions.iter().map(core).collect())
    }

    /// Checks that only this user or root can change the cache.
    pub(super) fn trusted(&self) -> Result<Existence, CacheError> {
        let meta = match fs::symlink_metadata(&self.root) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Existence::Missing);
            }
            Err(error) => return Err(io_error("examine", &self.root)(error)),
        };
        let me = rustix::process::geteuid().as_raw();
        let why = if !meta.is_dir() {
            "is not a directory"
        } else if meta.uid() != me && meta.uid() != 0 {
            "belongs to another user"
        } else if meta.mode() & 0o022 != 0 {
            "may be written by others"
        } else {
            return Ok(Existence::Exists);
        };
        Err(CacheError::Untrusted {
            path: self.root.clone(),
            why,
        })
    }

    fn is_complete(&self, version: &Version) -> bool {
        let path = self.path_of(version);
        let is_file = |name: &str| fs::symlink_metadata(path.join(name)).is_ok_and(|m| m.is_file());
        // A symbolic link to a directory does not count: it would lead out of the cache.
        fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir())
            && layout::REQUIRED.iter().all(|name| is_file(name))
    }

    pub(super) fn path_of(&self, version: &Version) -> PathBuf {
        self.root.join(version.as_str())
    }

    /// Reads a small file of the cache; `None` if it is missing, too large, not a regular file or
    /// not valid UTF-8.
    pub(super) fn read_small(&self, name: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(self.root.join(name), flags, Mode::empty()).ok()?;
        let mut text = String::new();
        File::from(fd).take(SMALL).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// Returns the core whose version is nearest to the wanted one, out of a list that begins with the
/// newest: the newest that is not newer, else the oldest. `None` if the wanted text is no version.
#[must_use]
pub fn nearest(cores: &[Core], wanted: &str) -> Option<PathBuf> {
    let wanted = Version::parse(wanted)?;
    let older = |core: &&Core| {
        Version::parse(&core.version)
            .is_some_and(|v| v <= wanted || v.is_release_of(wanted.as_str()))
    };
    let found = cores.iter().find(older).or_else(|| cores.last());
    found.map(|core| core.path.clone())
}

/// Whether the cache exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Exists,
    Missing,
}

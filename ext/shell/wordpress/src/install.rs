//! Installs a core into the cache, unless it is there already: downloads or reads it, checks it and
//! unpacks it.

use super::archive::{unpack_tgz, unpack_zip};
use super::cache::{CacheError, Core, Cores, io_error};
use super::directory;
use super::fetch::{FetchError, Fetcher, Pace};
use super::layout::{ALWAYS, REQUIRED, Take, VERSION_FILE};
use super::progress::Progress;
use super::release::{self, Checksums, Differs, PACKAGE, Package};
use super::source::{Network, Origins, Source};
use super::unpack::{Limits, Tree, UnpackError};
use super::version::{self, Version};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Maximum number of bytes of `version.php` that are read.
const VERSION_BYTES: u64 = 64 * 1024;

/// Reason why a core was not installed.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(WordpressInvalid, hint = "use a release: `wp-codebox wordpress install VERSION`", detail = Self::detail)]
enum InstallError {
    #[error(transparent)]
    #[code(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    #[code(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    #[code(transparent)]
    Differs(#[from] Differs),
    /// The source cannot be unpacked or copied.
    #[error("{of} was not installed: {source}")]
    #[code(transparent)]
    Unpack {
        of: String,
        #[source]
        source: UnpackError,
    },
    /// The source does not contain a WordPress core.
    #[error("{of} was not installed: it has no WordPress core, because {missing} is missing")]
    #[code(
        hint = "the files must be at the top level or, in a zip, in one directory \"wordpress\""
    )]
    NotWordPress { of: String, missing: &'static str },
    /// The core states no version, or one that cannot be the name of a directory.
    #[error("{of} was not installed: its {VERSION_FILE} states no usable version{found}")]
    Version {
        of: String,
        /// Empty, or a colon and the stated text.
        found: String,
    },
    /// The core states a version other than the one that the server announced.
    #[error(
        "{of} was not installed: its {VERSION_FILE} states version {found}, but the server announced another one; try again"
    )]
    OtherVersion { of: String, found: String },
    /// `--offline` was given, and the wanted core is not in the cache.
    #[error("{wanted} is not installed, and --offline forbids downloading it")]
    #[code(
        WordpressUnavailable,
        hint = "run `wp-codebox wordpress install` without --offline once",
        hint = "or install from a file: `wp-codebox wordpress install --offline FILE.zip`"
    )]
    Offline { wanted: String },
}

impl InstallError {
    fn detail(&self, mut body: ErrorBody) -> ErrorBody {
        if let Self::Unpack { .. } = self {
            body.message = self.to_string();
        }
        body
    }
}

impl Cores {
    /// Installs a core unless its version is in the cache, and returns it. The first core of a
    /// cache becomes the default.
    ///
    /// # Errors
    /// If the source, the network or the cache cannot be used, or what the source contains is not
    /// the core that it should be.
    pub fn install(
        &self,
        source: &Source,
        network: Network,
        progress: &dyn Progress,
    ) -> Result<Core, ErrorBody> {
        let install = Install {
            cores: self,
            limits: Limits::default(),
            pace: Pace::default(),
            package: &PACKAGE,
            progress,
        };
        install.run(source, &network)
    }
}

/// Cache, limits and package of one install.
pub(super) struct Install<'i> {
    pub(super) cores: &'i Cores,
    pub(super) limits: Limits,
    pub(super) pace: Pace,
    pub(super) package: &'i Package,
    pub(super) progress: &'i dyn Progress,
}

/// An unpacked core that is not yet checked for completeness and version.
struct Unpacked {
    /// Name of the source for messages.
    of: String,
    /// Name of the source for the file [`super::cache::RECORD`] of the cached core.
    source: String,
    stage: TempDir,
    files: Checksums,
}

impl Install<'_> {
    pub(super) fn run(&self, source: &Source, network: &Network) -> Result<Core, ErrorBody> {
        self.core(source, network).map_err(|error| {
            let is_unreachable = matches!(error, InstallError::Fetch(FetchError::Unreachable { .. }));
            if let InstallError::Fetch(FetchError::Write { .. }) = error {
                return error.body().hint(format!(
                    "free space on the disk of {}, or set XDG_CACHE_HOME to another directory (not for root)",
                    self.cores.root.display()
                ));
            }
            match source {
                Source::Version(_) if is_unreachable => error.body().hint(
                    "or take the version that the npm registry has: `wp-codebox wordpress install npm`",
                ),
                _ => error.body(),
            }
        })
    }

    fn core(&self, source: &Source, network: &Network) -> Result<Core, InstallError> {
        if let Some(core) = self.without_change(source, network)? {
            return Ok(core);
        }
        self.cores.prepare()?;
        let _lock = self.cores.lock(self.progress)?;
        self.cores.sweep();
        let core = match (source, network) {
            (Source::Zip(path), _) => {
                self.local(path, |tree, title| self.zip(path, title, tree))?
            }
            (Source::Directory(path), _) => {
                self.local(path, |tree, title| directory::copy(path, title, tree))?
            }
            (Source::Latest, Network::Online(origins)) => self.latest(origins)?,
            (Source::Version(version), Network::Online(origins)) => {
                self.release(&self.fetcher(origins)?, origins, version)?
            }
            (Source::Npm, Network::Online(origins)) => {
                self.package(&self.fetcher(origins)?, origins)?
            }
            (Source::Latest | Source::Version(_) | Source::Npm, Network::Offline) => {
                return Err(self.offline(source));
            }
        };
        Ok(self.cores.choose_first(core)?)
    }

    /// Returns the wanted core if it is already installed, without using network or lock.
    fn without_change(
        &self,
        source: &Source,
        network: &Network,
    ) -> Result<Option<Core>, InstallError> {
        let cores = self.cores;
        let found = match (source, network) {
            (Source::Zip(_) | Source::Directory(_), _) | (Source::Latest, Network::Online(_)) => {
                return Ok(None);
            }
            (Source::Latest, Network::Offline) => cores.newest()?,
            (Source::Version(version), Network::Offline) => cores.core(Some(version.as_str()))?,
            (Source::Version(version), Network::Online(_)) => cores.exactly(version)?,
            (Source::Npm, _) => cores.core(Some(self.package.wordpress))?,
        };
        match (found, network) {
            (None, Network::Offline) => Err(self.offline(source)),
            (found, _) => Ok(found),
        }
    }

    fn offline(&self, source: &Source) -> InstallError {
        InstallError::Offline {
            wanted: match source {
                Source::Version(version) => format!("WordPress {}", version.as_str()),
                Source::Npm => format!("WordPress {}", self.package.wordpress),
                Source::Latest | Source::Zip(_) | Source::Directory(_) => "WordPress".to_owned(),
            },
        }
    }

    fn fetcher(&self, origins: &Origins) -> Result<Fetcher, InstallError> {
        Ok(Fetcher::new(origins, self.pace)?)
    }

    /// Installs the newest release. If wordpress.org cannot be reached, installs the npm package
    /// instead, unless the cache has a core that is not older.
    fn latest(&self, origins: &Origins) -> Result<Core, InstallError> {
        let fetcher = self.fetcher(origins)?;
        let newest = release::latest(&fetcher, origins)
            .map_err(InstallError::from)
            .and_then(|version| self.release(&fetcher, origins, &version));
        let reason = match newest {
            Err(InstallError::Fetch(error @ FetchError::Unreachable { .. })) => error,
            other => return other,
        };
        let packaged = Version::parse(self.package.wordpress);
        let newest = self.cores.newest()?;
        let installed = newest.filter(|core| Version::parse(&core.version) >= packaged);
        if let Some(core) = installed {
            self.progress.note(&format!(
                "{reason}; using the installed WordPress {}",
                core.version
            ));
            return Ok(core);
        }
        self.progress.note(&format!(
            "{reason}; installing WordPress {} from the {} instead",
            self.package.wordpress, self.package.title
        ));
        self.package(&fetcher, origins)
    }

    fn release(
        &self,
        fetcher: &Fetcher,
        origins: &Origins,
        version: &Version,
    ) -> Result<Core, InstallError> {
        // Another process may have installed this version while this one waited for the lock.
        if let Some(core) = self.cores.exactly(version)? {
            return Ok(core);
        }
        let of = format!("WordPress {}", version.as_str());
        let stage = self.cores.stage()?;
        let mut archive = archive_in(&stage)?;
        let published = release::download(
            fetcher,
            origins,
            version,
            &mut archive,
            &self.limits,
            self.progress,
        )?;
        let source = origins.releases().to_owned();
        let unpacked = self.unpack(of.clone(), source, stage, |tree| {
            unpack_zip(archive, &of, Take::All, tree)
        })?;
        release::compare(version, &unpacked.files, &published)?;
        self.place(unpacked, Some(version))
    }

    fn package(&self, fetcher: &Fetcher, origins: &Origins) -> Result<Core, InstallError> {
        let package = self.package;
        if let Some(core) = self.cores.core(Some(package.wordpress))? {
            return Ok(core);
        }
        let of = format!("the {}", package.title);
        let stage = self.cores.stage()?;
        let mut archive = archive_in(&stage)?;
        release::download_package(
            fetcher,
            origins,
            package,
            &mut archive,
            &self.limits,
            self.progress,
        )?;
        let source = package.title.to_owned();
        let unpacked = self.unpack(of.clone(), source, stage, |tree| {
            unpack_tgz(archive, &of, package.top, Take::Core, tree)
        })?;
        let expected = Version::parse(package.wordpress);
        self.place(unpacked, expected.as_ref())
    }

    /// Installs from a zip or directory of this host.
    fn local(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut Tree<'_>, &str) -> Result<(), UnpackError>,
    ) -> Result<Core, InstallError> {
        let of = path.display().to_string();
        let stage = self.cores.stage()?;
        let unpacked = self.unpack(of.clone(), of.clone(), stage, |tree| fill(tree, &of))?;
        self.place(unpacked, None)
    }

    fn zip(&self, path: &Path, title: &str, tree: &mut Tree<'_>) -> Result<(), UnpackError> {
        use rustix::fs::{Mode, OFlags};
        let unreadable = |source| UnpackError::Unreadable {
            path: path.display().to_string(),
            source,
        };
        // Follow a link at the end of the path, because the user gave the path. If the file was
        // replaced by a FIFO after its type was examined, O_NONBLOCK keeps open from waiting.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| unreadable(e.into()))?;
        let file = File::from(fd);
        let meta = file.metadata().map_err(unreadable)?;
        if !meta.is_file() {
            return Err(UnpackError::Special {
                name: title.to_owned(),
                kind: "a special file",
            });
        }
        if meta.len() > self.limits.archive {
            return Err(UnpackError::TooLarge {
                most: self.limits.archive,
                unit: "bytes",
            });
        }
        unpack_zip(file, title, Take::Core, tree)
    }

    fn unpack(
        &self,
        of: String,
        source: String,
        stage: TempDir,
        fill: impl FnOnce(&mut Tree<'_>) -> Result<(), UnpackError>,
    ) -> Result<Unpacked, InstallError> {
        let files = Tree::create(&stage.path().join(CORE), self.limits, self.progress)
            .and_then(|mut tree| {
                fill(&mut tree)?;
                ALWAYS.iter().try_for_each(|path| tree.directory(path))?;
                Ok(tree.into_files())
            })
            .map_err(|source| InstallError::Unpack {
                of: of.clone(),
                source,
            })?;
        self.progress.finish();
        Ok(Unpacked {
            of,
            source,
            stage,
            files,
        })
    }

    /// Checks an unpacked core and moves it into the cache, unless its version is installed already.
    fn place(&self, unpacked: Unpacked, expected: Option<&Version>) -> Result<Core, InstallError> {
        let of = || unpacked.of.clone();
        for missing in REQUIRED {
            if !unpacked.files.contains_key(missing) {
                return Err(InstallError::NotWordPress { of: of(), missing });
            }
        }
        let core = unpacked.stage.path().join(CORE);
        let version = version_of(&core, of())?;
        if expected.is_some_and(|expected| *expected != version) {
            return Err(InstallError::OtherVersion {
                of: of(),
                found: version.as_str().to_owned(),
            });
        }
        if let Some(core) = self.cores.exactly(&version)? {
            self.progress.note(&format!(
                "WordPress {} is installed already, from {}; remove {} to replace it",
                core.version,
                core.source,
                core.path.display()
            ));
            return Ok(core);
        }
        Ok(self.cores.place(&core, &version, &unpacked.source)?)
    }
}

/// Name of the core's directory in the temporary directory of an install.
const CORE: &str = "core";

/// Creates an unlinked temporary file for an archive in a stage.
fn archive_in(stage: &TempDir) -> Result<File, CacheError> {
    tempfile::tempfile_in(stage.path()).map_err(io_error("create a file in", stage.path()))
}

/// Reads the version that a core states.
fn version_of(core: &Path, of: String) -> Result<Version, InstallError> {
    let path = core.join(VERSION_FILE);
    let mut text = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(VERSION_BYTES).read_to_end(&mut text))
        .map_err(io_error("read", &path))?;
    let text = String::from_utf8_lossy(&text);
    let stated = version::stated(&text);
    stated
        .and_then(Version::parse)
        .ok_or_else(|| InstallError::Version {
            of,
            found: stated.map_or(String::new(), |stated| {
                let shown: String = stated.chars().take(64).collect();
                format!(": {shown:?}")
            }),
        })
}

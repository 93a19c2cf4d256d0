//! Sources of a core: the argument of the user, and the servers.

use super::version::Version;
use reqwest::Url;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Environment variable with the origin of one server to use instead of wordpress.org and npm.
pub const ORIGIN_VARIABLE: &str = "WP_CODEBOX_WORDPRESS_ORIGIN";

/// Core to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The newest release of wordpress.org.
    Latest,
    /// A release of wordpress.org.
    Version(Version),
    /// The core in a pinned npm package.
    Npm,
    /// A zip on this host.
    Zip(PathBuf),
    /// A directory on this host.
    Directory(PathBuf),
}

/// Reason why an argument is not a valid source or a setting is not a valid origin.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(InputInvalid)]
pub(super) enum SourceError {
    /// A path does not exist, or this user may not access it.
    #[error("{path:?} cannot be read: {source}")]
    #[code(hint = "name a zip or directory with WordPress, or a version")]
    Path {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A path is neither a file nor a directory.
    #[error("{path:?} is neither a zip nor a directory")]
    #[code(hint = "name a zip or directory with WordPress, or a version")]
    Kind { path: PathBuf },
    /// The argument is neither a known word nor a version nor a path.
    #[error(
        "{given:?} is neither a version such as 6.9, nor latest, nor npm, nor a zip or directory"
    )]
    #[code(hint = "write a path with a slash, such as ./wordpress, or with the ending .zip")]
    Unknown { given: String },
    /// The value of the environment variable is not a permitted origin.
    #[error(
        "{ORIGIN_VARIABLE} {given:?} is neither an https URL without query nor http://127.0.0.1:PORT or http://localhost:PORT"
    )]
    #[code(
        ConfigInvalid,
        hint = "unset the variable to use wordpress.org and the npm registry"
    )]
    Origin { given: String },
}

impl Source {
    /// Reads the argument of `wordpress install`. A text with a slash or the ending `.zip` is a
    /// path; a text with the syntax of a version is a version, even if a file has that name.
    ///
    /// # Errors
    /// If the argument is no source.
    pub fn parse(given: &OsStr) -> Result<Self, ErrorBody> {
        Self::read(given).map_err(ErrorBody::from)
    }

    fn read(given: &OsStr) -> Result<Self, SourceError> {
        let path = Path::new(given);
        let has_zip_ending = path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
        let Some(text) = given.to_str().filter(|text| !text.contains('/')) else {
            return Self::of_path(path);
        };
        match (text, Version::parse(text)) {
            ("latest", _) => Ok(Self::Latest),
            ("npm", _) => Ok(Self::Npm),
            (_, Some(version)) if !has_zip_ending => Ok(Self::Version(version)),
            _ if has_zip_ending || path.exists() => Self::of_path(path),
            _ => Err(SourceError::Unknown {
                given: text.to_owned(),
            }),
        }
    }

    fn of_path(path: &Path) -> Result<Self, SourceError> {
        let read = |source| SourceError::Path {
            path: path.to_owned(),
            source,
        };
        let absolute = std::path::absolute(path).map_err(read)?;
        // Examine the type without opening the path: opening a FIFO would wait for a writer.
        let meta = std::fs::metadata(&absolute).map_err(read)?;
        if meta.is_dir() {
            Ok(Self::Directory(absolute))
        } else if meta.is_file() {
            Ok(Self::Zip(absolute))
        } else {
            Err(SourceError::Kind {
                path: path.to_owned(),
            })
        }
    }
}

/// Whether an install may use the network.
#[derive(Debug, Clone)]
pub enum Network {
    /// These servers may be asked.
    Online(Origins),
    /// No connection is made.
    Offline,
}

/// Origins of the servers, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    /// Versions and checksums of WordPress.
    pub(super) api: String,
    /// Archives of WordPress.
    pub(super) downloads: String,
    /// The npm registry.
    pub(super) registry: String,
    pub(super) transport: Transport,
}

/// Whether the connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tls,
    /// Plain HTTP to this machine.
    Loopback,
}

impl Origins {
    /// Returns the servers to ask: those of wordpress.org and npm, or the origin in the environment
    /// variable [`ORIGIN_VARIABLE`], which is for mirrors and tests.
    ///
    /// # Errors
    /// If the value of the variable is no origin.
    pub fn new(variable: Option<&OsStr>) -> Result<Self, ErrorBody> {
        match variable.filter(|value| !value.is_empty()) {
            None => Ok(Self::public()),
            Some(given) => Self::mirror(&given.to_string_lossy()).map_err(ErrorBody::from),
        }
    }

    pub(super) fn public() -> Self {
        Self {
            api: "https://api.wordpress.org".to_owned(),
            downloads: "https://downloads.wordpress.org".to_owned(),
            registry: "https://registry.npmjs.org".to_owned(),
            transport: Transport::Tls,
        }
    }

    /// Returns origins that all are the same server.
    pub(super) fn mirror(given: &str) -> Result<Self, SourceError> {
        let refused = || SourceError::Origin {
            given: given.to_owned(),
        };
        let url = Url::parse(given).map_err(|_| refused())?;
        let transport = match (url.scheme(), url.host_str()) {
            ("https", Some(_)) => Transport::Tls,
            ("http", Some("127.0.0.1" | "localhost")) => Transport::Loopback,
            _ => return Err(refused()),
        };
        // Refuse a user name and password: they would appear in messages and in records of the
        // cache.
        let is_bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_bare {
            return Err(refused());
        }
        let origin = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            api: origin.clone(),
            downloads: origin.clone(),
            registry: origin,
            transport,
        })
    }

    /// Returns the name of the server from which releases come, for records and messages.
    pub(super) fn releases(&self) -> &str {
        if *self == Self::public() {
            return "wordpress.org";
        }
        &self.downloads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use wp_codebox_contracts::ErrorCode;

    fn parse(given: impl AsRef<OsStr>) -> Result<Source, SourceError> {
        Source::read(given.as_ref())
    }

    #[test]
    fn source_argument_is_latest_or_npm_or_a_version_or_an_existing_path_or_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let (zip, directory) = (temp.path().join("6.9.zip"), temp.path().join("site"));
        fs::write(&zip, "").unwrap();
        fs::create_dir(&directory).unwrap();
        assert_eq!(parse("latest").unwrap(), Source::Latest);
        assert_eq!(parse("npm").unwrap(), Source::Npm);
        let version = Version::parse("6.9-RC1").unwrap();
        assert_eq!(parse("6.9-RC1").unwrap(), Source::Version(version));
        assert_eq!(parse(&zip).unwrap(), Source::Zip(zip));
        assert_eq!(parse(&directory).unwrap(), Source::Directory(directory));
        assert!(matches!(parse(".").unwrap(), Source::Directory(_)));
        for unknown in ["", "newest", "v6.9", "6.9_1"] {
            let error = parse(unknown).unwrap_err();
            assert!(matches!(error, SourceError::Unknown { .. }), "{unknown}");
            assert_eq!(error.body().code, ErrorCode::InputInvalid);
        }
        for missing in ["6.9.zip", "./6.9", "/no/such/file"] {
            let error = parse(missing).unwrap_err();
            assert!(matches!(error, SourceError::Path { .. }), "{missing}");
        }
    }

    #[test]
    fn fifo_as_source_is_refused_without_opening_it() {
        let temp = tempfile::tempdir().unwrap();
        let fifo = temp.path().join("wordpress.zip");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = parse(&fifo).unwrap_err();
        assert!(matches!(error, SourceError::Kind { .. }));
        assert_eq!(error.body().code, ErrorCode::InputInvalid);
    }

    #[test]
    fn origin_is_https_or_plain_http_to_this_machine() {
        for (good, origin, transport) in [
            (
                "https://mirror.example/",
                "https://mirror.example",
                Transport::Tls,
            ),
            (
                "https://m.example/wp/",
                "https://m.example/wp",
                Transport::Tls,
            ),
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080",
                Transport::Loopback,
            ),
            (
                "http://localhost:1/",
                "http://localhost:1",
                Transport::Loopback,
            ),
        ] {
            let origins = Origins::mirror(good).unwrap();
            assert_eq!(
                (origins.api.as_str(), origins.transport),
                (origin, transport)
            );
            assert_eq!(origins.releases(), origin);
        }
        for bad in [
            "",
            "mirror.example",
            "http://mirror.example",
            "http://127.0.0.1.mirror.example",
            "http://127.0.0.2:80",
            "http://localhost.example",
            "ftp://localhost",
            "file:///etc/passwd",
            "https://user@mirror.example",
            "https://:secret@mirror.example",
            "https://mirror.example/?a=b",
            "https://mirror.example/#a",
        ] {
            let error = Origins::mirror(bad).unwrap_err();
            assert_eq!(error.body().code, ErrorCode::ConfigInvalid, "{bad}");
        }
        assert_eq!(Origins::public().releases(), "wordpress.org");
    }
}

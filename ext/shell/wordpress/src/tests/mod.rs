//! Tests of installs from generated archives, directories and a loopback server.

mod cache;
mod hostile;
mod local;
mod online;
mod server;

use super::cache::{Core, Cores};
use super::fetch::Pace;
use super::install::Install;
use super::progress::{Progress, Silent, Step};
use super::release::{PACKAGE, Package};
use super::source::{Network, Origins, Source, Transport};
use super::unpack::Limits;
use super::version::Version;
use md5::{Digest, Md5};
use server::Server;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use zip::write::SimpleFileOptions;

/// Files of a core by path.
type Files = BTreeMap<String, Vec<u8>>;

/// Returns the files of a small core.
fn core_files(version: &str) -> Files {
    let version_php = format!("<?php\n$wp_version = '{version}';\n");
    [
        ("wp-load.php", "<?php // load"),
        ("wp-settings.php", "<?php // settings"),
        ("wp-config-sample.php", "<?php // sample"),
        ("license.txt", "GPL"),
        ("wp-admin/includes/upgrade.php", "<?php // upgrade"),
        ("wp-includes/version.php", version_php.as_str()),
        ("wp-includes/js/a.js", "a"),
        ("wp-content/index.php", "<?php // silence"),
        (
            "wp-content/themes/twentytwentyfive/style.css",
            "/* style */",
        ),
    ]
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .into()
}

/// Returns a zip of files, all below `top`.
fn zip_of(top: &str, files: &Files) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in files {
        writer
            .start_file(format!("{top}{path}"), SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Writes files below a directory.
fn write_files(directory: &Path, files: &Files) {
    for (path, bytes) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Progress that records the steps and notes that a user would see.
#[derive(Default)]
struct Recorded {
    lines: RefCell<Vec<String>>,
}

impl Progress for Recorded {
    fn begin(&self, step: Step, title: &str, _: Option<u64>) {
        self.lines.borrow_mut().push(format!("{step:?} {title}"));
    }
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
    fn note(&self, sentence: &str) {
        self.lines.borrow_mut().push(sentence.to_owned());
    }
}

/// A cache in a temporary directory, and the limits of its installs.
struct Bench {
    temp: TempDir,
    cores: Cores,
    limits: Limits,
    pace: Pace,
    package: Package,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        Self {
            cores: Cores::new(&temp.path().join("cache")),
            temp,
            limits: Limits::default(),
            pace: Pace::default(),
            package: PACKAGE,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.path("cache/wordpress")
    }

    fn install_showing(
        &self,
        source: &Source,
        network: Network,
        progress: &dyn Progress,
    ) -> Result<Core, ErrorBody> {
        let install = Install {
            cores: &self.cores,
            limits: self.limits,
            pace: self.pace,
            package: &self.package,
            progress,
        };
        install.run(source, &network)
    }

    fn install(&self, source: &Source, network: Network) -> Result<Core, ErrorBody> {
        self.install_showing(source, network, &Silent)
    }

    /// Installs from a zip with these bytes.
    fn install_zip(&self, bytes: &[u8]) -> Result<Core, ErrorBody> {
        let path = self.path("given.zip");
        fs::write(&path, bytes).unwrap();
        self.install(&Source::Zip(path), Network::Offline)
    }

    fn install_directory(&self, directory: &str) -> Result<Core, ErrorBody> {
        self.install(&Source::Directory(self.path(directory)), Network::Offline)
    }

    /// Returns the names in the cache, except for that of the lock file.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root())
            .map(|entries| {
                entries
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .filter(|name| name != ".lock")
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names
    }

    /// Checks that an install failed with this code and left nothing behind.
    #[track_caller]
    fn refused(&self, result: Result<Core, ErrorBody>, code: ErrorCode) -> ErrorBody {
        let error = result.unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(!error.hints.is_empty(), "{}", error.message);
        assert_eq!(self.names(), [""; 0], "{}", error.message);
        error
    }
}

fn version(text: &str) -> Source {
    Source::Version(Version::parse(text).unwrap())
}

fn online(server: &Server) -> Network {
    Network::Online(Origins::mirror(&server.origin()).unwrap())
}

/// Returns an origin that refuses connections, and the socket whose bound port no other test gets.
fn closed_origin() -> (String, OwnedFd) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
    (format!("http://{address}"), bound)
}

/// Returns the server's answer with the checksums of these files.
fn checksums(files: &Files) -> Vec<u8> {
    let rows: BTreeMap<&String, String> = files
        .iter()
        .map(|(path, bytes)| (path, hex(&Md5::digest(bytes))))
        .collect();
    serde_json::to_vec(&serde_json::json!({ "checksums": rows })).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

//! Tells the recipe planner which files, versions and environment variables this host has. Relative
//! paths are resolved against the directory of the recipe file.

use super::{facts, parent};
use crate::environment::Environment;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, RunPaths, hex};
use wp_codebox_policy::{MountAuthority, broken_secret_rule, check_source, check_staged_source};
use wp_codebox_recipe::{
    HostFacts, PathKind, SecretStatus, SiteSeed, Sources, WpFallback, ZipEntry, ZipUnreadable,
};
use wp_codebox_supervisor::{list_archive, plugin_header};

/// Environment variable: if set to 1, a recipe must state the sha256 of each archive.
const REQUIRE_SHA256: &str = "WP_CODEBOX_REQUIRE_SOURCE_SHA256";
/// Environment variable: if set to 1, the policy that is derived from a recipe opens the hosts from
/// which its blueprint installs plugins and themes.
const ALLOW_DOWNLOADS: &str = "WP_CODEBOX_ALLOW_NETWORK_DOWNLOADS";
/// Environment variable with secrets that have no variable of their own, as a JSON object.
const PROJECTIONS: &str = "WP_CODEBOX_SECRET_ENV_PROJECTIONS";
/// Number of bytes at the start of a file in which WordPress searches for a plugin header.
const HEADER_BYTES: u64 = 8 * 1024;
/// Maximum number of files of a plugin that are searched for a plugin header.
const MAX_NAMES: usize = 500;

/// Access of the planner of one recipe to the files and versions of this host.
#[derive(Debug)]
pub struct Host {
    directory: PathBuf,
    paths: RunPaths,
    facts: HostFacts,
    environment: Environment,
    /// Content that was read from the site at `paths.wordpress`, by the name of the site seed that
    /// selects it.
    parent: RefCell<BTreeMap<String, Result<String, String>>>,
}

impl Host {
    /// Reads the versions of WordPress and PHP at `paths`; `directory` is that of the recipe file.
    pub fn new(
        directory: PathBuf,
        paths: RunPaths,
        fallback: WpFallback,
        environment: Environment,
    ) -> Result<Self, ErrorBody> {
        let facts = facts::read(&paths, fallback)?;
        Ok(Self {
            directory,
            paths,
            facts,
            environment,
            parent: RefCell::default(),
        })
    }

    /// Returns the host path of a path in the recipe.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Returns the environment of the command.
    pub(super) const fn environment(&self) -> Environment {
        self.environment
    }

    fn open(&self, path: &str) -> Result<File, ZipUnreadable> {
        let unreadable = |e: String| ZipUnreadable { reason: e };
        let path = self.resolve(path);
        let about = std::fs::metadata(&path).map_err(|e| unreadable(e.to_string()))?;
        if !about.is_file() {
            return Err(unreadable("it is not a regular file".to_owned()));
        }
        File::open(path).map_err(|e| unreadable(e.to_string()))
    }
}

/// Returns the value of a secret and where it comes from: the environment variable of its name, or a
/// member of the JSON object in [`PROJECTIONS`]. An empty value counts as missing.
pub(super) fn secret_value(name: &str, environment: Environment) -> Option<(String, &'static str)> {
    let filled = |value: &String| !value.is_empty();
    if let Some(value) = environment(name).filter(filled) {
        return Some((value, "environment"));
    }
    let projections = environment(PROJECTIONS)?;
    let mut map: BTreeMap<String, serde_json::Value> = serde_json::from_str(&projections).ok()?;
    match map.remove(name)? {
        serde_json::Value::String(value) => {
            Some((value, "projection")).filter(|row| filled(&row.0))
        }
        _ => None,
    }
}

impl Sources for Host {
    fn kind(&self, path: &str) -> PathKind {
        if path.is_empty() || path.contains('\0') {
            return PathKind::Missing;
        }
        // Another file can appear at this path after the validation, so the run checks the files
        // again when it opens them.
        let Ok(canonical) = self.resolve(path).canonicalize() else {
            return if self.resolve(path).is_symlink() {
                PathKind::Other
            } else {
                PathKind::Missing
            };
        };
        let Ok(about) = std::fs::metadata(&canonical) else {
            return PathKind::Missing;
        };
        let Some(text) = canonical.to_str() else {
            return PathKind::Other;
        };
        let authority = MountAuthority { paths: &self.paths };
        let (kind, allowed) = if about.is_dir() {
            (PathKind::Directory, check_source(text, "it", authority))
        } else if about.is_file() {
            (PathKind::File, check_staged_source(text, "it", authority))
        } else {
            return PathKind::Other;
        };
        match allowed {
            Ok(()) => kind,
            Err(_) => PathKind::Denied,
        }
    }

    fn zip(&self, path: &str) -> Result<Vec<ZipEntry>, ZipUnreadable> {
        Ok(list_archive(self.open(path)?)?.entries)
    }

    fn sha256(&self, path: &str) -> Option<String> {
        let mut digest = Sha256::new();
        let mut file = self.open(path).ok()?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => break,
                read => digest.update(&buffer[..read]),
            }
        }
        Some(hex(&digest.finalize()))
    }

    fn requires_sha256(&self) -> bool {
        (self.environment)(REQUIRE_SHA256).is_some_and(|value| value == "1")
    }

    fn plugin_file(&self, path: &str) -> Option<String> {
        let name = path.trim_end_matches('/').rsplit('/').next()?;
        let full = self.resolve(path);
        if full.is_file() {
            let mut listed = list_archive(self.open(path).ok()?).ok()?;
            let top = listed.top();
            let slug = if top.is_empty() {
                name.strip_suffix(".zip").unwrap_or(name).to_owned()
            } else {
                top.trim_end_matches('/').to_owned()
            };
            return plugin_header(&listed.heads(&top), &slug);
        }
        let mut heads = BTreeMap::new();
        for row in std::fs::read_dir(&full).ok()?.take(MAX_NAMES) {
            let row = row.ok()?;
            let file = row.file_name().to_str()?.to_owned();
            if !file.ends_with(".php") || !row.file_type().ok()?.is_file() {
                continue;
            }
            let mut head = Vec::new();
            let opened = File::open(row.path()).ok()?;
            opened.take(HEADER_BYTES).read_to_end(&mut head).ok()?;
            heads.insert(file, String::from_utf8_lossy(&head).into_owned());
        }
        // The path may end with `.` or `..`, so take the directory's name from the real path.
        let own = full.canonicalize().ok()?;
        let slug = own.file_name()?.to_str()?;
        plugin_header(&heads, slug)
    }

    fn secret(&self, name: &str) -> SecretStatus {
        match secret_value(name, self.environment) {
            None => SecretStatus::Missing,
            Some((value, source)) => match broken_secret_rule(&value) {
                None => SecretStatus::Available { source },
                Some(rule) => SecretStatus::Unusable { rule },
            },
        }
    }

    /// Reads the content once, so that what runs is what was validated.
    fn parent_content(&self, seed: &SiteSeed) -> Result<String, String> {
        let read = self.parent.borrow().get(&seed.name).cloned();
        if let Some(content) = read {
            return content;
        }
        let content = parent::content(&self.paths, seed);
        let kept = content.clone();
        self.parent.borrow_mut().insert(seed.name.clone(), kept);
        content
    }

    fn allows_downloads(&self) -> bool {
        (self.environment)(ALLOW_DOWNLOADS).is_some_and(|value| value == "1")
    }

    fn facts(&self) -> &HostFacts {
        &self.facts
    }
}

//! The WordPress template from which guests start, built once and cached.
//!
//! `<state>/templates/<key>/` contains `core` (the parent site's core files from an allow-list and
//! a fresh configuration), `content` (default theme, SQLite drop-in, guest plugin, installed
//! database), `opcache` (a file cache warmed at the guest's paths), `wp-cli` (the unpacked phar) and
//! `template.json`, which is written last. The key covers all inputs: a changed core, PHP or share directory gives a new
//! template, and an unchanged one is found by the names, sizes and times of its source files.
//!
//! A template is built in a temporary directory under a lock and then renamed. WordPress is
//! installed inside a guest; even the parent site's core never runs outside a guest.

mod build;
mod error;
mod files;
mod fingerprint;
mod record;

pub use error::TemplateError;
pub use fingerprint::{CORE_DIRECTORIES, CORE_FILES, newest_default_theme};
pub use record::{Template, TemplateRequest};

use record::{FORMAT, Record};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wp_codebox_artifacts::remove_tree;

/// Templates unused for this time are removed when another one is built.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);

/// Upper bound of a run's duration. A run sets its template's time of use at its start, so no
/// active run uses a template whose time of use is longer ago than this.
const LONGEST_RUN: Duration = Duration::from_secs(25 * 3600);

/// Returns the cached template or builds it. Finding a cached one takes a few milliseconds of
/// directory reading. A build takes seconds, and only one process builds at a time.
pub fn ensure_template(request: &TemplateRequest<'_>) -> Result<Template, TemplateError> {
    let parts = fingerprint::survey(request)?;
    let root = request.state_dir.join("templates");
    let directory = root.join(&parts.key);
    if let Some(template) = load(request, &directory, &parts.key)? {
        return Ok(template);
    }
    let io = |step| move |source: std::io::Error| TemplateError::Io { step, source };
    files::make_directory(request.state_dir, 0o700).map_err(io("state directory"))?;
    files::make_directory(&root, 0o700).map_err(io("templates directory"))?;
    let _lock = lock(&root)?;
    // Another process may have built the template while this one waited for the lock.
    if let Some(template) = load(request, &directory, &parts.key)? {
        return Ok(template);
    }
    sweep(&root, &parts.key, UNUSED, Sweep::Remove);
    let temporary = root.join(format!(".tmp-{}", std::process::id()));
    let built = build::build(request, &parts, &temporary).and_then(|record| {
        // `load` found no usable `template.json`, so a directory of this key can only come from a
        // crash of an older version.
        let _ = remove_tree(&directory);
        let text = serde_json::to_vec(&record).map_err(|_| TemplateError::Record)?;
        fs::write(temporary.join("template.json"), text).map_err(io("template.json"))?;
        fs::rename(&temporary, &directory).map_err(io("rename"))
    });
    if let Err(error) = built {
        let _ = remove_tree(&temporary);
        return Err(error);
    }
    load(request, &directory, &parts.key)?.ok_or(TemplateError::Record)
}

fn load(
    request: &TemplateRequest<'_>,
    directory: &Path,
    key: &str,
) -> Result<Option<Template>, TemplateError> {
    let path = directory.join("template.json");
    let Ok(bytes) = fs::read(&path) else {
        return Ok(None);
    };
    let Ok(record) = serde_json::from_slice::<Record>(&bytes) else {
        return Ok(None);
    };
    if record.format != FORMAT || record.key != key {
        return Ok(None);
    }
    let template = Template::below(directory, request, record.key, record.wordpress_version)?;
    // Records the time of this use; only the removal of unused templates reads it.
    let _ = files::set_times(&path, SystemTime::now());
    Ok(Some(template))
}

/// Takes the lock that only one builder of templates can hold; dropping the descriptor releases it.
fn lock(root: &Path) -> Result<rustix::fd::OwnedFd, TemplateError> {
    let io = |source: rustix::io::Errno| TemplateError::Io {
        step: "lock",
        source: source.into(),
    };
    let file = rustix::fs::open(
        root.join(".lock"),
        OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )
    .map_err(io)?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))
        .map_err(io)?;
    Ok(file)
}

/// A template directory that a sweep removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StaleTemplate {
    /// A builder crashed before it finished the template.
    Unfinished {
        /// Directory name.
        name: String,
    },
    /// No run used the template for a long time.
    Unused {
        /// Key of the template.
        key: String,
    },
}

/// Whether a sweep of old templates removes them or only lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Removes templates.
    Remove,
    /// Lists the templates that would be removed.
    List,
}

/// What a sweep of old templates did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Templates that were removed, or would be removed when the sweep only lists them.
    pub removed: Vec<StaleTemplate>,
    /// Number of finished templates that were kept because their last use is too recent.
    pub stayed: usize,
}

/// Removes unfinished templates of crashed builders, and templates that no run has used for
/// `unused`. A value below the longest duration of a run counts as that duration. Removes nothing
/// while a builder holds the lock.
#[must_use]
pub fn sweep_templates(state_dir: &Path, unused: Duration, mode: Sweep) -> Swept {
    let root = state_dir.join("templates");
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(lock) = rustix::fs::open(root.join(".lock"), flags, Mode::empty()) else {
        return Swept::default();
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => sweep(&root, "", unused.max(LONGEST_RUN), mode),
        Err(_) => Swept::default(),
    }
}

/// Removes old templates; the caller must hold the build lock. A template that cannot be removed
/// stays until the next sweep.
fn sweep(root: &Path, current: &str, unused: Duration, mode: Sweep) -> Swept {
    let mut swept = Swept::default();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stale = || {
            let record: PathBuf = entry.path().join("template.json");
            fs::metadata(record)
                .and_then(|meta| meta.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > unused))
        };
        let left = if name.starts_with(".tmp-") {
            StaleTemplate::Unfinished { name }
        } else if name != ".lock" && name != current && stale() {
            StaleTemplate::Unused { key: name }
        } else {
            swept.stayed += usize::from(name != ".lock");
            continue;
        };
        if mode == Sweep::List || remove_tree(&entry.path()).is_ok() {
            swept.removed.push(left);
        }
    }
    swept
}

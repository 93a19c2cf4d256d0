//! Recognises WordPress sites: their core, their content directory, and directories that contain a
//! site.
//!
//! Known layouts: core and `wp-content` in one directory; Bedrock (`web/wp` beside `web/app`); a
//! moved content directory (`content` beside `wp`); the document root of a local development
//! environment (`public`, `htdocs`, `wordpress`) in a directory that also has other files.

use super::folder::Folder;
use super::place::{Bounds, Level, MAX_LEVELS, UserDirectories, name};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::terminal_text::plain_line;

/// Paths at which the core can be, relative to a directory that contains the site.
const CORES: &[&str] = &["wp", "wordpress", "web/wp", "public", "htdocs"];
/// Names of a content directory that lies beside the directory of the core.
const MOVED_CONTENT: &[&str] = &["app", "content"];
const CONTENT: &str = "wp-content";
/// Subdirectories of a content directory from which WordPress loads plugins and themes.
const PLUGINS: &str = "plugins";
const THEMES: &str = "themes";
const MU_PLUGINS: &str = "mu-plugins";

/// Function of a directory in a site. If a directory has different roles by its real path and by
/// the user's path, the one that is later in this list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// No known function in a site: the directory can be a project.
    Ordinary,
    /// A directory of plugins or themes outside a known site, for example in a checkout without the
    /// core. A file with a plugin header directly in it, such as `hello.php`, does not make it a
    /// plugin.
    Collection,
    /// The content directory of a site, or its directory of plugins or themes.
    Container,
    /// `wp-admin` or `wp-includes`.
    CorePart,
    /// The directory with the core.
    Core,
}

/// Returns the role of a directory: of the roles by its real path and by the user's path, the one
/// that is later in [`Role`].
pub(super) fn role(level: &Level) -> Role {
    role_of(&level.real).max(role_of(&level.shown))
}

fn role_of(path: &Path) -> Role {
    if is_core(path) {
        return Role::Core;
    }
    let Some(parent) = path.parent() else {
        return Role::Ordinary;
    };
    match name(path) {
        "wp-admin" | "wp-includes" if is_core(parent) => Role::CorePart,
        PLUGINS | THEMES | MU_PLUGINS if is_content(parent) => Role::Container,
        _ if is_content(path) => Role::Container,
        PLUGINS | THEMES | MU_PLUGINS if parts(parent) > 1 => Role::Collection,
        _ => Role::Ordinary,
    }
}

/// Returns whether a directory is the content directory of a site. The name is not enough: a plugin
/// can have a directory `wp-content` for its drop-ins.
fn is_content(path: &Path) -> bool {
    let parent_is_core = || path.parent().is_some_and(is_core);
    let beside_core = |parent: &Path| ["wp", "wordpress"].iter().any(|c| is_core(&parent.join(c)));
    match name(path) {
        CONTENT => parent_is_core() || parts(path) > 0,
        moved if MOVED_CONTENT.contains(&moved) => path.parent().is_some_and(beside_core),
        _ => false,
    }
}

/// Returns how many of the directories `plugins`, `themes` and `mu-plugins` a directory has.
fn parts(path: &Path) -> usize {
    let parts = [PLUGINS, THEMES, MU_PLUGINS].iter();
    parts.filter(|part| path.join(part).is_dir()).count()
}

fn is_core(path: &Path) -> bool {
    path.join("wp-load.php").is_file() && path.join("wp-includes/version.php").is_file()
}

/// Returns the core in one of the known subdirectories.
fn core_below(path: &Path) -> Option<PathBuf> {
    let mut cores = CORES.iter().map(|below| path.join(below));
    cores.find(|core| is_core(core))
}

/// Returns whether a directory contains, in a known subdirectory, a site with a wp-config.php and
/// therefore with secrets. A core without one is only a dependency for tests and does not count.
pub(super) fn surrounds_site(path: &Path) -> bool {
    core_below(path).is_some_and(|core| {
        // WordPress also reads a wp-config.php in the directory above the core.
        core.ancestors()
            .take(2)
            .any(|place| place.join("wp-config.php").is_file())
    })
}

/// Returns the real path of the WordPress core that contains a directory or lies in a known place
/// beside it, the nearest one.
#[must_use]
pub fn site_around(directory: &Path, user: &UserDirectories) -> Option<PathBuf> {
    core_upwards(directory, &Bounds::of(user))
}

/// Returns the same as [`site_around`], searched first upwards on the path by which the user
/// reached the directory, then upwards on its real path.
pub(super) fn core_around(level: &Level, bounds: &Bounds) -> Option<PathBuf> {
    core_upwards(&level.shown, bounds).or_else(|| core_upwards(&level.real, bounds))
}

fn core_upwards(path: &Path, bounds: &Bounds) -> Option<PathBuf> {
    for directory in path.ancestors().take(MAX_LEVELS) {
        let real = directory.canonicalize().ok()?;
        if bounds.refuse(&real).is_some() {
            // A home directory can itself be the core, but a core in a subdirectory of it is
            // another project's.
            let is_home = bounds.home.as_ref() == Some(&real);
            return (is_home && is_core(&real)).then_some(real);
        }
        if is_core(&real) {
            return Some(real);
        }
        if let Some(core) = core_below(&real) {
            return core.canonicalize().ok();
        }
    }
    None
}

/// Returns the plugins and themes, e.g. `plugins/hello`, of the site to which a directory belongs;
/// for a directory such as `plugins` only those in it.
pub(super) fn members(level: &Level) -> Vec<String> {
    match members_of(&level.real) {
        none if none.is_empty() => members_of(&level.shown),
        members => members,
    }
}

fn members_of(path: &Path) -> Vec<String> {
    if [PLUGINS, THEMES, MU_PLUGINS].contains(&name(path)) {
        return directories(path, name(path));
    }
    let mut members = Vec::new();
    let contents = contents(path);
    for part in [PLUGINS, THEMES] {
        for content in &contents {
            members.extend(directories(&content.join(part), part));
        }
    }
    members
}

/// Returns the content directories of the site to which a directory belongs.
fn contents(path: &Path) -> Vec<PathBuf> {
    if is_content(path) {
        return vec![path.to_owned()];
    }
    let core = match role_of(path) {
        Role::Core => Some(path.to_owned()),
        Role::CorePart => path.parent().map(Path::to_owned),
        Role::Container | Role::Collection | Role::Ordinary => core_below(path),
    };
    let Some(core) = core else { return Vec::new() };
    let beside = core.parent().into_iter().flat_map(|parent| {
        let names = MOVED_CONTENT.iter().chain([&CONTENT]);
        names.map(|name| parent.join(name)).collect::<Vec<_>>()
    });
    let all = [core.join(CONTENT)].into_iter().chain(beside);
    all.filter(|content| is_content(content)).collect()
}

fn directories(path: &Path, part: &str) -> Vec<String> {
    let Ok(folder) = Folder::open(path) else {
        return Vec::new();
    };
    let names = folder.names().into_iter();
    names
        .filter(|name| !name.starts_with('.') && path.join(name).is_dir())
        .map(|name| plain_line(&format!("{part}/{name}")))
        .collect()
}

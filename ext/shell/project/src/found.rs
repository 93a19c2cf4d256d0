//! Describes a project: its kind, where to mount it and how to activate it.

use super::code::{Code, Header};
use super::place::{Level, name};
use super::slug::{Slug, choose, workspace_name};
use std::path::PathBuf;
use wp_codebox_contracts::ActivationKind;
use wp_codebox_contracts::terminal_text::plain_line;

/// Kind of a project, and the names that depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A plugin.
    Plugin {
        /// Name of its directory in the guest.
        slug: String,
        /// Name in its header.
        name: String,
        /// File with the header.
        file: String,
    },
    /// A theme.
    Theme {
        /// Name of its directory in the guest.
        slug: String,
        /// Name in its header.
        name: String,
    },
    /// A Composer package without a plugin or theme header.
    Composer {
        /// Name in composer.json, e.g. `vendor/package`.
        name: String,
    },
    /// Any other directory.
    Directory {
        /// Name of the directory in the guest.
        name: String,
    },
}

/// The project around a directory of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Plugin, theme, Composer package or other directory.
    pub(crate) kind: Kind,
    /// Real path of the directory to mount.
    pub root: PathBuf,
    /// Path of the mount in the guest.
    pub target: String,
    /// Slug of the parent theme, which must be mounted too, if the project is a child theme.
    pub parent_theme: Option<String>,
    /// Real path of the WordPress core directory that contains the project, if there is one.
    pub site: Option<PathBuf>,
    /// One sentence for the user: what was found, where, and where it is mounted.
    pub why: String,
}

impl Project {
    /// Returns the kind and name by which the guest activates the project; `None` if it is neither
    /// a plugin nor a theme.
    #[must_use]
    pub fn activation(&self) -> Option<(ActivationKind, String)> {
        match &self.kind {
            Kind::Plugin { slug, file, .. } => {
                Some((ActivationKind::Plugin, format!("{slug}/{file}")))
            }
            Kind::Theme { slug, .. } => Some((ActivationKind::Theme, slug.clone())),
            Kind::Composer { .. } | Kind::Directory { .. } => None,
        }
    }

    /// Returns true for a plugin, theme or Composer package. A command that also works without a
    /// mount mounts only these if the user gives no `--mount`.
    #[must_use]
    pub const fn is_recognised(&self) -> bool {
        !matches!(self.kind, Kind::Directory { .. })
    }
}

/// Content of a directory by which it was recognised as a project.
#[derive(Debug)]
pub(super) enum Found {
    Code(Code),
    /// A Composer package with this name and type.
    Package {
        name: String,
        package_type: Option<String>,
    },
    WorkTree,
    Nothing,
}

/// Builds the project of a directory. The caller sets `site`.
pub(super) fn describe(level: &Level, found: Found) -> Project {
    match found {
        Found::Code(Code::Plugin(header)) => plugin(level, header),
        Found::Code(Code::Theme(header, parent)) => theme(level, header, parent),
        Found::Package { name, package_type } => composer(level, name, package_type.as_deref()),
        Found::WorkTree => directory(level, "git work tree"),
        Found::Nothing => directory(level, "directory"),
    }
}

fn plugin(level: &Level, header: Header) -> Project {
    let stem = header.file.strip_suffix(".php");
    let Slug { text: slug, origin } = choose(&level.shown, header.text_domain.as_deref(), stem);
    let Header {
        name,
        version,
        file,
        ..
    } = header;
    let what = format!("plugin {name:?}{} ({file})", spaced(version));
    let must_use = level.shown.parent().map(self::name) == Some("mu-plugins");
    let notes = [
        link_note(level),
        origin,
        must_use.then(|| {
            "it is mounted as an ordinary plugin, because WP Codebox itself uses the mu-plugins directory of the guest".to_owned()
        }),
    ];
    let target = format!("/wordpress/wp-content/plugins/{slug}");
    shaped(
        level,
        target,
        Kind::Plugin { slug, name, file },
        &what,
        notes,
    )
}

fn theme(level: &Level, header: Header, parent: Option<String>) -> Project {
    let Slug { text: slug, origin } = choose(&level.shown, header.text_domain.as_deref(), None);
    let name = header.name;
    let what = format!("theme {name:?}{} (style.css)", spaced(header.version));
    let child = parent
        .as_ref()
        .map(|parent| format!("it is a child theme of {parent:?}"));
    let target = format!("/wordpress/wp-content/themes/{slug}");
    let notes = [link_note(level), origin, child];
    Project {
        parent_theme: parent,
        ..shaped(level, target, Kind::Theme { slug, name }, &what, notes)
    }
}

fn composer(level: &Level, name: String, package_type: Option<&str>) -> Project {
    let short = name.rsplit('/').next().unwrap_or_default();
    let target = format!("/workspace/{}", workspace_name(short));
    let missing = match package_type {
        Some("wordpress-plugin" | "wordpress-muplugin") => {
            Some("no PHP file directly in it has a plugin header, so it cannot be activated")
        }
        Some("wordpress-theme") => {
            Some("it has no style.css with a theme header, so it cannot be activated")
        }
        Some(_) | None => None,
    };
    let what = format!("Composer package {name}");
    let notes = [None, None, missing.map(str::to_owned)];
    shaped(level, target, Kind::Composer { name }, &what, notes)
}

fn directory(level: &Level, what: &str) -> Project {
    let name = workspace_name(level.name());
    let target = format!("/workspace/{name}");
    let nothing = "neither a plugin nor a theme nor a Composer package with a name was found";
    let notes = [None, None, Some(nothing.to_owned())];
    shaped(level, target, Kind::Directory { name }, what, notes)
}

/// Returns a project without parent theme and site.
fn shaped(
    level: &Level,
    target: String,
    kind: Kind,
    what: &str,
    notes: [Option<String>; 3],
) -> Project {
    let mut why = format!("{what} at {} → {target}", level.real.display());
    for note in notes.into_iter().flatten() {
        why.push_str("; ");
        why.push_str(&note);
    }
    Project {
        kind,
        root: level.real.clone(),
        target,
        parent_theme: None,
        site: None,
        why: plain_line(&why),
    }
}

/// Returns a note for the user if the project has the name of a symbolic link.
fn link_note(level: &Level) -> Option<String> {
    (level.name() != name(&level.real))
        .then(|| format!("its name is that of the link {}", level.shown.display()))
}

fn spaced(version: Option<String>) -> String {
    version.map_or(String::new(), |version| format!(" {version}"))
}

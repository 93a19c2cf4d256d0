//! Finds the project that contains a directory, or that is exactly this directory.

use super::code::identify;
use super::composer::Package;
use super::error::ProjectError;
use super::folder::Folder;
use super::found::{Found, Project, describe};
use super::place::{Bounds, Level, Place, UserDirectories, absolute, name};
use super::site::{Role, core_around, members, role, surrounds_site};
use std::path::Path;

/// Returns the project for a directory. Searches it and the directories above it for the nearest
/// plugin or theme, else the nearest Composer package with a name, else the nearest git work tree;
/// without any, the project is the directory itself.
///
/// # Errors
/// If the directory cannot be a project, or none can be chosen.
pub fn around(start: &Path, user: &UserDirectories) -> Result<Project, ProjectError> {
    let start = absolute(start, user.working.as_deref())?;
    find(&start, Reach::Upward, &Bounds::of(user))
}

/// Returns the project that is exactly this directory.
///
/// # Errors
/// Like [`around`].
pub fn of(directory: &Path, user: &UserDirectories) -> Result<Project, ProjectError> {
    let directory = absolute(directory, user.working.as_deref())?;
    find(&directory, Reach::Here, &Bounds::of(user))
}

/// Directories in which the project is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The start and every directory above it.
    Upward,
    /// The start only.
    Here,
}

pub(super) fn find(start: &Path, reach: Reach, bounds: &Bounds) -> Result<Project, ProjectError> {
    let place = Place::new(start, bounds)?;
    match role(&place.start) {
        Role::Ordinary | Role::Collection => {}
        Role::Container | Role::CorePart | Role::Core => return Err(whole_site(&place.start)),
    }
    let above = match reach {
        Reach::Upward => &place.above[..],
        Reach::Here => &[],
    };
    let levels: Vec<&Level> = std::iter::once(&place.start).chain(above).collect();
    let found = match search(outside_dependencies(&levels))? {
        Some(outer) => Some(outer),
        None => search(&levels)?,
    };
    let (level, found) = match found {
        Some(found) => found,
        None if surrounds_site(&place.start.real) => return Err(whole_site(&place.start)),
        None => (&place.start, Found::Nothing),
    };
    check_path(&level.real)?;
    let mut project = describe(level, found);
    project.site = core_around(level, bounds);
    Ok(project)
}

/// Returns the directories above the outermost `vendor` or `node_modules`, because code below that
/// is a dependency of a project above it. Empty if there is no such directory.
fn outside_dependencies<'l, 'p>(levels: &'l [&'p Level]) -> &'l [&'p Level] {
    let is_dependencies = |level: &&Level| matches!(name(&level.real), "vendor" | "node_modules");
    match levels.iter().rposition(is_dependencies) {
        Some(outermost) => &levels[outermost + 1..],
        None => &[],
    }
}

fn search<'p>(levels: &[&'p Level]) -> Result<Option<(&'p Level, Found)>, ProjectError> {
    let mut package = None;
    let mut work_tree = None;
    for level in levels {
        let code = match role(level) {
            Role::Ordinary => identify(level)?,
            Role::Collection => None,
            Role::Container => continue,
            Role::CorePart => return Err(whole_site(level)),
            // End the search: a core is not a project, and the directories around a site contain
            // its secrets.
            Role::Core => break,
        };
        if let Some(code) = code {
            return Ok(Some((*level, Found::Code(code))));
        }
        if surrounds_site(&level.real) {
            break;
        }
        let Ok(folder) = Folder::open(&level.real) else {
            continue;
        };
        if package.is_none() {
            package = named_package(&folder).map(|found| (*level, found));
        }
        if work_tree.is_none() && folder.has(".git") {
            work_tree = Some((*level, Found::WorkTree));
        }
    }
    Ok(package.or(work_tree))
}

fn whole_site(level: &Level) -> ProjectError {
    ProjectError::WholeSite {
        directory: level.real.clone(),
        members: members(level),
    }
}

fn named_package(folder: &Folder) -> Option<Found> {
    let package = Package::read(folder)?;
    Some(Found::Package {
        name: package.name()?.to_owned(),
        package_type: package.package_type().map(str::to_owned),
    })
}

/// Refuses characters that the syntax `HOST:GUEST` of a mount, or a terminal, interprets.
fn check_path(real: &Path) -> Result<(), ProjectError> {
    let text = real.to_string_lossy();
    let what = if text.contains(':') {
        "`:`, which separates the parts of a mount"
    } else if text.contains(char::is_control) {
        "a control character"
    } else {
        return Ok(());
    };
    let directory = real.to_owned();
    Err(ProjectError::Character { directory, what })
}

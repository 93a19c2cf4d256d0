//! Checks and opens components and agent bundles on the host and mounts them into a guest.
//!
//! A component is code of the host that the guest's WordPress loads, such as a plugin. It passes
//! the same checks as a mount. The host finds the component's entry file through the open directory
//! and tells the guest the name of that file, so the guest does not search.

use super::generated;
use super::sources::{OpenMount, OpenStaged, Shown, open_file, open_source};
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wp_codebox_contracts::{
    Component, ErrorBody, ErrorCode, GitChoice, GitView, GuestPath, MountAccess, MountRequest,
    RunRequest, RuntimePolicy,
};
use wp_codebox_policy as policy;

/// Guest directory in which the files of agent bundles (agent definitions) are visible.
const BUNDLES: &str = "/run/codebox/staged/agent-bundles";
/// Maximum number of entries of a directory in which the file with the plugin header is searched. A
/// larger directory needs the component's `entry`.
const MAX_NAMES: usize = 10_000;
/// Number of bytes at the beginning of a file in which WordPress searches for a plugin header.
const HEADER_BYTES: u64 = 8 * 1024;

/// A component, e.g. a plugin, whose directory has been opened and may be shown to the guest.
#[derive(Debug)]
pub(crate) struct OpenComponent {
    pub component: Component,
    /// Entry file that WordPress loads, relative to the component's directory.
    pub entry: String,
    pub mount: OpenMount,
}

/// Components of a run whose directories have been opened.
#[derive(Debug, Default)]
pub(crate) struct OpenComponents {
    pub rows: Vec<OpenComponent>,
    /// Notices about optional components that cannot be used, one sentence each.
    pub left_out: Vec<String>,
}

impl OpenComponents {
    /// Returns the opened directories of the components.
    pub(crate) fn mounts_mut(&mut self) -> impl Iterator<Item = &mut OpenMount> {
        self.rows.iter_mut().map(|row| &mut row.mount)
    }
}

/// Validates the components of the request before anything is opened. Returns the guest directory
/// of each component, in the order of the request.
pub(crate) fn check(
    request: &RunRequest,
    mounts: &[GuestPath],
    policy: &RuntimePolicy,
) -> Result<Vec<GuestPath>, ErrorBody> {
    let apart = policy::apart_from_components(&request.mounts, mounts, &request.components);
    policy::check_components(&request.components, &apart, policy).map_err(ErrorBody::from)
}

/// Opens the components and finds the entry file of each.
pub(crate) fn open(
    request: &RunRequest,
    places: Vec<GuestPath>,
) -> Result<OpenComponents, ErrorBody> {
    let mut all = OpenComponents::default();
    for (component, target) in request.components.iter().zip(places) {
        let subject = format!("component {}", component.slug);
        let made = generated::of(request, &component.slug);
        let opened = match made {
            Some(row) => generated::open(row, &component.source, &subject, request),
            None => open_source(&component.source, &subject, request),
        };
        let (source, path) = opened.map_err(|mut error| {
            if error.code == ErrorCode::MountSourceInvalid {
                error.code = ErrorCode::ComponentPathMissing;
            }
            error.with("component", component.slug.as_str())
        })?;
        let entry = match made {
            // The component's directory is generated later, so its entry file cannot be searched
            // yet.
            Some(_) => Ok(String::new()),
            None => entry(source.as_fd(), component),
        };
        match entry {
            Ok(entry) => all.rows.push(OpenComponent {
                component: component.clone(),
                entry,
                mount: OpenMount {
                    request: MountRequest {
                        source: component.source.clone(),
                        target: target.as_str().to_owned(),
                        mode: MountAccess::Readonly,
                        exclude: Vec::new(),
                        git: GitChoice::None,
                        metadata: Some(description(component)),
                    },
                    target,
                    source,
                    path,
                    shown: Shown::ByPath,
                    git: GitView::None,
                    history: None,
                    left_out: Vec::new(),
                },
            }),
            Err(why) if component.required => {
                return Err(unavailable(&component.slug, &why));
            }
            Err(why) => all.left_out.push(optional(&component.slug, &why)),
        }
    }
    Ok(all)
}

/// Describes a component for the list of mounts in the bundle, without its host path.
fn description(component: &Component) -> Map<String, Value> {
    Map::from_iter([
        ("kind".to_owned(), json!("component")),
        ("slug".to_owned(), json!(component.slug)),
        ("loadAs".to_owned(), json!(component.load_as)),
    ])
}

/// Returns the error for a required component that cannot be used.
pub(crate) fn unavailable(slug: &str, why: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ComponentUnavailable,
        format!("the required component {slug} cannot be used: {why}"),
    )
    .hint("correct the component, or leave it out")
    .with("component", slug)
}

/// Returns the notice for an optional component that cannot be used.
pub(crate) fn optional(slug: &str, why: &str) -> String {
    format!("the optional component {slug} is not available: {why}")
}

/// Finds the entry file: the requested name, else `<slug>.php`, `plugin.php`, or the only file with
/// a plugin header.
pub(crate) fn entry(directory: BorrowedFd<'_>, component: &Component) -> Result<String, String> {
    if let Some(named) = &component.entry {
        return match open_below(directory, named) {
            Some(_) => Ok(named.clone()),
            None => Err(format!(
                "its directory has no file {named}; correct `entry`"
            )),
        };
    }
    for name in [format!("{}.php", component.slug), "plugin.php".to_owned()] {
        if open_below(directory, &name).is_some() {
            return Ok(name);
        }
    }
    let mut headered = names(directory)?
        .into_iter()
        .filter(|name| open_below(directory, name).is_some_and(has_header));
    match (headered.next(), headered.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => Err("no PHP file in its directory has a plugin header; set `entry`".into()),
        (Some(_), Some(_)) => {
            Err("several PHP files in its directory have a plugin header; set `entry`".into())
        }
    }
}

/// Returns the names of the PHP files in a directory, sorted.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<String>, String> {
    let failed = |e: rustix::io::Errno| format!("its directory cannot be read: {e}");
    let mut names = Vec::new();
    // The kernel also lists `.` and `..`.
    for (number, row) in Dir::read_from(directory).map_err(failed)?.enumerate() {
        if number >= MAX_NAMES + 2 {
            return Err(format!(
                "its directory has more than {MAX_NAMES} entries, too many to search for the file with the plugin header; set `entry`"
            ));
        }
        let row = row.map_err(failed)?;
        if let Ok(name) = row.file_name().to_str()
            && name.ends_with(".php")
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Opens a regular file below the directory without following symbolic links.
fn open_below(directory: BorrowedFd<'_>, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = openat2(directory, name, flags, Mode::empty(), resolve).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(fd)
}

fn has_header(file: OwnedFd) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::from(file)
        .take(HEADER_BYTES)
        .read_to_end(&mut head);
    read.is_ok() && String::from_utf8_lossy(&head).contains("Plugin Name:")
}

/// Reads the files of agent bundles (agent definitions) on the host, and changes their paths in the
/// request to guest paths.
pub(crate) fn bundle_files(request: &mut RunRequest) -> Result<Vec<OpenStaged>, ErrorBody> {
    let mut files = Vec::new();
    let mut bundles = std::mem::take(&mut request.agent_bundles);
    for (index, bundle) in bundles.iter_mut().enumerate() {
        if let Some(source) = &mut bundle.source {
            let target = GuestPath::new(format!("{BUNDLES}/{index}.json"))
                .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
            files.push(open_file(source, target.clone(), request)?);
            *source = target.as_str().to_owned();
        }
    }
    request.agent_bundles = bundles;
    Ok(files)
}

/// Returns the components as the bundle records them, without host paths.
pub(crate) fn record(components: &[Component]) -> Vec<Value> {
    components
        .iter()
        .map(|component| {
            let mut row = json!(component);
            if let Some(row) = row.as_object_mut() {
                row.remove("source");
            }
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use wp_codebox_contracts::ComponentLoad;

    const HEADER: &str = "<?php\n/* Plugin Name: X */\n";

    fn found(files: &[(&str, &str)], named: Option<&str>) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink("/etc/passwd", directory.path().join("link.php")).unwrap();
        let open = fs::File::open(directory.path()).unwrap();
        entry(open.as_fd(), &component(named))
    }

    fn component(named: Option<&str>) -> Component {
        Component {
            slug: "agent".to_owned(),
            source: String::new(),
            load_as: ComponentLoad::Plugin,
            entry: named.map(str::to_owned),
            activate: false,
            required: false,
            readiness_probe: None,
        }
    }

    #[test]
    fn component_entry_file_is_the_given_one_a_default_name_or_the_one_with_a_plugin_header() {
        let all = [
            ("agent.php", HEADER),
            ("plugin.php", HEADER),
            ("src/load.php", ""),
        ];
        assert_eq!(found(&all, Some("src/load.php")).unwrap(), "src/load.php");
        assert_eq!(found(&all, None).unwrap(), "agent.php");
        assert_eq!(found(&all[1..], None).unwrap(), "plugin.php");
        let one = [("a.php", "<?php"), ("b.php", HEADER)];
        assert_eq!(found(&one, None).unwrap(), "b.php");
        let two = [("a.php", HEADER), ("b.php", HEADER)];
        assert!(found(&two, None).unwrap_err().contains("several"));
        assert!(found(&[], None).unwrap_err().contains("no PHP file"));
        assert!(found(&all, Some("missing.php")).is_err());
        assert!(found(&all, Some("link.php")).is_err(), "a link leads out");
        assert!(
            found(&all, Some("src")).is_err(),
            "a directory is not a file"
        );
    }

    #[test]
    fn plugin_header_is_found_among_all_entries_and_too_many_entries_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let add = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        (1..MAX_NAMES).for_each(|number| add(&format!("{number}.txt"), ""));
        add("z.php", HEADER);
        let open = || fs::File::open(directory.path()).unwrap();
        let found = entry(open().as_fd(), &component(None));
        assert_eq!(found.unwrap(), "z.php");
        add("one-more.txt", "");
        let refused = entry(open().as_fd(), &component(None)).unwrap_err();
        assert!(refused.contains("set `entry`"), "{refused}");
        let named = entry(open().as_fd(), &component(Some("z.php")));
        assert_eq!(named.unwrap(), "z.php");
    }
}

//! Guest paths of mounts and single files: normalised form, and how a file appears at its path.

use crate::model::{Access, Mount, Recipe, SourceKind};
use crate::sources::{PathKind, Sources};
use serde_json::Value;

/// Directory of must-use plugins in the guest.
pub(crate) const MUST_USE: &str = "/wordpress/wp-content/mu-plugins";

/// Normalises the guest paths of a recipe: other runtimes accept `//wordpress//wp-content/a/`.
/// A path with `..` stays as it is, and validation refuses it.
pub(crate) fn normalise(recipe: &mut Recipe) {
    let inputs = &mut recipe.inputs;
    let mut all: Vec<&mut String> = Vec::new();
    all.extend(inputs.mounts.iter_mut().map(|m| &mut m.target));
    all.extend(inputs.staged_files.iter_mut().map(|s| &mut s.target));
    all.extend(
        inputs
            .workspaces
            .iter_mut()
            .filter_map(|w| w.target.as_mut()),
    );
    if let Some(distribution) = &mut recipe.distribution {
        all.push(&mut distribution.wordpress.root);
        all.extend(distribution.source_mounts.iter_mut().map(|m| &mut m.target));
    }
    all.extend(recipe.artifacts.paths.iter_mut().map(|a| &mut a.path));
    all.extend(recipe.artifacts.typed.iter_mut().map(|a| &mut a.path));
    for path in all {
        *path = normal(path);
    }
}

/// Returns an absolute guest path without empty and `.` segments.
pub(crate) fn normal(path: &str) -> String {
    if !path.starts_with('/') || path.split('/').any(|s| s == "..") {
        return path.to_owned();
    }
    let segments = path.split('/').filter(|s| !matches!(*s, "" | "."));
    format!("/{}", segments.collect::<Vec<_>>().join("/"))
}

/// Returns the mounts of the recipe with their JSON paths: those of `runtime.stack`, then
/// `inputs.mounts`.
pub(crate) fn mounts(recipe: &Recipe) -> Vec<(String, Mount)> {
    let stack = recipe.runtime.stack.as_ref().and_then(|s| s.get("mounts"));
    let rows = stack.and_then(Value::as_array).into_iter().flatten();
    let of_stack = rows.enumerate().filter_map(|(index, row)| {
        // The grammar has checked the rows, so each is a mount.
        let mut mount: Mount = serde_json::from_value(row.clone()).ok()?;
        mount.target = normal(&mount.target);
        Some((format!("$.runtime.stack.mounts[{index}]"), mount))
    });
    let own = recipe.inputs.mounts.iter().enumerate();
    let own = own.map(|(index, mount)| (format!("$.inputs.mounts[{index}]"), mount.clone()));
    of_stack.chain(own).collect()
}

/// Returns whether the source of a mount is a single file.
pub(crate) fn is_file(kind: Option<SourceKind>, source: &str, sources: &dyn Sources) -> bool {
    match kind {
        Some(SourceKind::File) => true,
        Some(SourceKind::Directory) => false,
        None => sources.kind(source) == PathKind::File,
    }
}

/// How a single file appears in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileView {
    /// The file is mounted at its path, read-only.
    Shown,
    /// The first step of the run copies the file to its path, where the guest may change it.
    Copied,
}

/// Returns how a file appears at its path; `None` if it must be writable at a path where a guest
/// cannot write.
pub(crate) fn file_view(target: &str, mode: Option<Access>) -> Option<FileView> {
    let writable = ["/wordpress/wp-content/", "/tmp/", "/home/agent/"]
        .iter()
        .any(|root| target.starts_with(root));
    match (mode, writable) {
        (Some(Access::Readonly), _) | (None, false) => Some(FileView::Shown),
        (None | Some(Access::Readwrite), true) => Some(FileView::Copied),
        (Some(Access::Readwrite), false) => None,
    }
}

/// Returns the guest path from which the first step copies the file of the mount with this index.
pub(crate) fn staged_mount(index: usize) -> String {
    format!("/run/codebox/staged/recipe/mounts/{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_guest_paths_without_parent_segments_are_normalised() {
        for (given, normal_form) in [
            (
                "//wordpress//wp-content/./plugins/a/",
                "/wordpress/wp-content/plugins/a",
            ),
            ("/", "/"),
            ("/a/../b//c", "/a/../b//c"),
            ("relative//x", "relative//x"),
        ] {
            assert_eq!(normal(given), normal_form);
        }
    }

    /// `Shown` means a read-only mount of the file; `None` means refused.
    #[test]
    fn writable_file_is_copied_where_guests_may_write_and_refused_elsewhere() {
        use FileView::{Copied, Shown};
        let (read, write) = (Some(Access::Readonly), Some(Access::Readwrite));
        let content = "/wordpress/wp-content/mu-plugins/a.php";
        assert_eq!(file_view(content, None), Some(Copied));
        assert_eq!(file_view(content, write), Some(Copied));
        assert_eq!(file_view(content, read), Some(Shown));
        assert_eq!(file_view("/harness/a.php", None), Some(Shown));
        assert_eq!(file_view("/harness/a.php", write), None);
    }
}

//! Plugins and themes that a blueprint installs.

use super::package::{Package, PackageKind, PackageSource};
use super::part::{Part, PartResult, Scope, check_members, wp_cli};
use crate::grammar::Pattern;
use crate::php_source::program;
use crate::sources::is_below;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::CommandCall;

/// How a package gets into the guest.
enum Origin {
    Mounted(PackageSource, String),
    /// WP-CLI in the guest downloads it through the egress bridge: slug or URL, and host.
    Download(String, String),
    /// WP-CLI in the guest installs it from an archive in the guest: path of the archive.
    Archive(String),
}

/// Converts a step that installs a plugin or theme.
pub(super) fn install(
    kind: PackageKind,
    row: &Value,
    path: &str,
    scope: &mut Scope<'_>,
) -> PartResult {
    let names = match kind {
        PackageKind::Plugin => ["pluginData", "pluginZipFile"],
        PackageKind::Theme => ["themeData", "themeZipFile"],
    };
    let resource = names.iter().find_map(|name| row.get(*name));
    let resource = resource.ok_or_else(|| format!("the step needs the member \"{}\"", names[0]))?;
    let options = row.get("options").unwrap_or(&Value::Null);
    check_members(
        "options",
        options,
        &[
            "activate",
            "importStarterContent",
            "targetFolderName",
            "activationOptions",
        ],
    )?;
    if options.get("importStarterContent") == Some(&Value::Bool(true)) {
        return Err("starter content of a theme is not imported; create the content with wp-cli or runPHP steps".to_owned());
    }
    let activate = options
        .get("activate")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    let folder = options.get("targetFolderName").and_then(Value::as_str);
    match origin(kind, resource, folder)? {
        Origin::Mounted(source, slug) => {
            let slug = folder.unwrap_or(&slug).to_owned();
            if !Pattern::Slug.fits(&slug) {
                return Err("the name of the package is not valid as a directory name; set options.targetFolderName".to_owned());
            }
            scope.packages.push(Package {
                path: path.to_owned(),
                kind,
                slug: slug.clone(),
                source,
            });
            Ok(activation(kind, &slug, activate))
        }
        Origin::Download(what, host) => {
            if kind == PackageKind::Theme && scope.theme == Some(what.as_str()) {
                return Ok(activation(kind, &what, activate));
            }
            scope.downloads.push((path.to_owned(), host));
            Ok(Part::Call(from_archive(kind, &what, activate)))
        }
        Origin::Archive(file) => Ok(Part::Call(from_archive(kind, &file, activate))),
    }
}

fn from_archive(kind: PackageKind, what: &str, activate: bool) -> CommandCall {
    let more = if activate { " --activate" } else { "" };
    wp_cli(format!("{} install '{what}'{more}", kind.word()))
}

fn activation(kind: PackageKind, slug: &str, activate: bool) -> Part {
    if !activate {
        return Part::Ignored;
    }
    Part::Call(match kind {
        PackageKind::Plugin => program("activate-plugins.php", &json!({"plugins": [slug]})),
        PackageKind::Theme => wp_cli(format!("theme activate {slug}")),
    })
}

fn origin(kind: PackageKind, resource: &Value, folder: Option<&str>) -> Result<Origin, String> {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    if let Some(text) = resource.as_str() {
        return address(text);
    }
    let of = text("resource")
        .ok_or("the resource needs the member `resource` with its kind, such as url")?;
    match of {
        "wordpress.org/plugins" | "wordpress.org/themes" => {
            if !of.ends_with(&format!("{}s", kind.word())) {
                return Err(format!("a {} cannot come from {of}", kind.word()));
            }
            let slug = text("slug").unwrap_or_default();
            if !Pattern::Slug.fits(slug) {
                return Err("the resource needs the slug of the package".to_owned());
            }
            Ok(Origin::Download(slug.to_owned(), "downloads.wordpress.org".to_owned()))
        }
        "url" => address(text("url").ok_or("the resource needs the member url")?),
        "bundled" => Ok(local(text("path").ok_or("the resource needs the member path")?)),
        "vfs" => {
            let path = text("path").ok_or("the resource needs the member path")?;
            if !path.starts_with('/') || path.contains(['\'', '\n', '\0']) {
                return Err("a resource of kind vfs is an archive in the guest: name its absolute path".to_owned());
            }
            Ok(Origin::Archive(path.to_owned()))
        }
        "literal:directory" => {
            let name = folder.or_else(|| text("name")).unwrap_or_default().to_owned();
            let mut files = BTreeMap::new();
            tree(resource.get("files").unwrap_or(&Value::Null), "", &mut files)?;
            Ok(Origin::Mounted(PackageSource::Files(files), name))
        }
        "git:directory" => Err("a git repository is not fetched during a run; check it out beforehand and name its directory in a resource of kind url".to_owned()),
        "literal" => Err("an archive cannot be text in the blueprint; use literal:directory, or name a local archive".to_owned()),
        other => Err(format!(
            "a resource of kind {:?} is not supported here; use wordpress.org/{}s, url, vfs or literal:directory",
            other.chars().take(100).collect::<String>(),
            kind.word()
        )),
    }
}

/// Returns the origin that an address or path names: `https://…`, `file:…`, a path, or a slug of
/// WordPress.org.
fn address(text: &str) -> Result<Origin, String> {
    if text.contains(['\'', '\n', '\0']) || text.is_empty() {
        return Err(
            "the address of the package is empty, or contains a quotation mark or a line break"
                .to_owned(),
        );
    }
    for scheme in ["https://", "http://"] {
        if let Some(rest) = text.strip_prefix(scheme) {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return Ok(Origin::Download(text.to_owned(), host.to_lowercase()));
        }
    }
    if let Some(path) = text
        .strip_prefix("file://")
        .or_else(|| text.strip_prefix("file:"))
    {
        return Ok(local(path));
    }
    if Pattern::Slug.fits(text) {
        return Ok(Origin::Download(
            text.to_owned(),
            "downloads.wordpress.org".to_owned(),
        ));
    }
    Ok(local(text))
}

fn local(path: &str) -> Origin {
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let name = name.strip_suffix(".zip").unwrap_or(name);
    Origin::Mounted(PackageSource::Local(path.to_owned()), name.to_owned())
}

/// Collects the files of a directory tree in a blueprint: texts by name, directories as objects.
pub(super) fn tree(
    value: &Value,
    below: &str,
    files: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let rows = value
        .as_object()
        .ok_or("files must be an object: the name of each file with its text, of each directory with an object of this kind")?;
    for (name, value) in rows {
        let path = format!("{below}{name}");
        if !is_below(&path) {
            return Err(format!(
                "{:?} is not a valid file name",
                path.chars().take(100).collect::<String>()
            ));
        }
        match value {
            Value::String(text) => {
                files.insert(path, text.clone());
            }
            value => tree(value, &format!("{path}/"), files)?,
        }
    }
    Ok(())
}

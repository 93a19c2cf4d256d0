//! Recognises a plugin or theme by the headers of the files directly in a directory.

use super::error::ProjectError;
use super::folder::Folder;
use super::header::value;
use super::place::{Level, name};
use super::slug::subversion_slug;
use wp_codebox_contracts::terminal_text::is_hidden;

const STYLE: &str = "style.css";

/// File names of drop-ins, which WordPress loads only from the content directory. Some plugins
/// contain a drop-in with a plugin header, to be copied to that directory. So a file with one of
/// these names counts as the main file of a plugin only if it is named like the plugin's directory.
const DROP_INS: &[&str] = &[
    "advanced-cache.php",
    "db-error.php",
    "db.php",
    "object-cache.php",
    "sunrise.php",
];

/// Header of a plugin or theme.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub name: String,
    pub version: Option<String>,
    pub text_domain: Option<String>,
    /// Name of the file with the header.
    pub file: String,
}

/// The plugin or theme in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Code {
    Plugin(Header),
    /// A theme, and the slug of its parent if it is a child theme.
    Theme(Header, Option<String>),
}

/// Returns the plugin or theme in a directory; `None` if it has no header or cannot be read.
pub(super) fn identify(level: &Level) -> Result<Option<Code>, ProjectError> {
    // A directory that cannot be read could not be mounted either, so it is not a project. Only
    // directories above the start of the search can be unreadable here.
    let Ok(folder) = Folder::open(&level.real) else {
        return Ok(None);
    };
    let theme = theme(&folder);
    match (plugin(&folder, level)?, theme) {
        (Some(plugin), Some(_)) => Err(ProjectError::PluginAndTheme {
            directory: level.real.clone(),
            plugin: plugin.file,
        }),
        (Some(plugin), None) => Ok(Some(Code::Plugin(plugin))),
        (None, theme) => Ok(theme),
    }
}

fn theme(folder: &Folder) -> Option<Code> {
    let head = folder.head(STYLE)?;
    let header = header(&head, STYLE, "Theme Name")?;
    Some(Code::Theme(header, value(&head, "Template")))
}

fn header(head: &str, file: &str, field: &str) -> Option<Header> {
    Some(Header {
        name: value(head, field)?,
        version: value(head, "Version"),
        text_domain: value(head, "Text Domain"),
        file: file.to_owned(),
    })
}

/// Finds the plugin of a directory: the file named like the directory, otherwise the only file with a
/// header, otherwise the only one whose header has a version.
fn plugin(folder: &Folder, level: &Level) -> Result<Option<Header>, ProjectError> {
    let read = |file: &str| header(&folder.head(file)?, file, "Plugin Name");
    // Open the files with the usual names directly: `names` does not return all entries of a large
    // directory.
    let usual = [
        Some(level.name()),
        Some(name(&level.real)),
        subversion_slug(&level.shown),
    ];
    let mut usual = usual.into_iter().flatten();
    if let Some(header) = usual.find_map(|name| read(&format!("{name}.php"))) {
        return Ok(Some(header));
    }
    let names = folder.names();
    let mut headers: Vec<Header> = names
        .iter()
        .filter(|name| is_plugin_file(name))
        .filter_map(|name| read(name))
        .collect();
    let versioned = |header: &&Header| header.version.is_some();
    if headers.len() > 1 && headers.iter().filter(versioned).count() == 1 {
        headers.retain(|header| header.version.is_some());
    }
    let mut headers = headers.into_iter();
    match (headers.next(), headers.next()) {
        (Some(first), Some(second)) => Err(ProjectError::TwoPlugins {
            directory: level.real.clone(),
            first: first.file,
            second: second.file,
        }),
        (only, _) => Ok(only),
    }
}

/// Returns true if a file can be the main file of a plugin. Names with control characters are
/// refused, because the name becomes part of a command line and of messages.
fn is_plugin_file(name: &str) -> bool {
    name.ends_with(".php")
        && !name.starts_with('.')
        && !name.contains(is_hidden)
        && !DROP_INS.contains(&name)
}

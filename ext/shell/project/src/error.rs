//! Reasons why no project can be determined for a directory, with stable codes and hints.

use std::io;
use std::path::PathBuf;
use wp_codebox_contracts::CodedError;

/// Maximum number of plugins and themes that an error message lists.
const MAX_LISTED: usize = 10;

/// Reason why no project can be determined for a directory.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(InputInvalid)]
pub enum ProjectError {
    /// The directory does not exist, or its path cannot be resolved.
    #[error("{directory} cannot be opened: {source}")]
    #[code(MountSourceInvalid, hint = "check the path")]
    Missing {
        /// Path as the user gave it.
        directory: PathBuf,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The path leads to a file.
    #[error("{path} is not a directory")]
    #[code(MountSourceInvalid, hint = "name the directory that contains the file")]
    NotADirectory {
        /// Path as the user gave it.
        path: PathBuf,
    },
    /// The directory cannot be listed.
    #[error("{directory} cannot be read: {source}")]
    #[code(
        MountUnreadable,
        hint = "give the user that runs wp-codebox read access to the directory"
    )]
    Unreadable {
        /// Path as the user gave it.
        directory: PathBuf,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The path is not valid UTF-8, so it cannot be stored in the JSON of a run request.
    #[error("the path {directory} is not valid UTF-8")]
    #[code(hint = "rename the directory")]
    NotUtf8 {
        /// Path with replacement characters.
        directory: PathBuf,
    },
    /// The path contains a character that the syntax of `--mount` or a terminal interprets.
    #[error("the path {directory:?} contains {what}")]
    #[code(hint = "rename the directory, or state the guest path: --mount DIR:/workspace/NAME")]
    Character {
        /// Real path of the project.
        directory: PathBuf,
        /// The character, e.g. "`:`".
        what: &'static str,
    },
    /// The directory is never a project, e.g. the home directory.
    #[error("{directory} is {what}, which cannot be a project")]
    #[code(hint = "cd into the plugin, theme or package, or state what to mount: --mount DIR")]
    NotAProject {
        /// Real path of the directory.
        directory: PathBuf,
        /// Kind of the directory.
        what: &'static str,
    },
    /// Several PHP files have a plugin header, and no rule prefers one.
    #[error("two plugins are in {directory}: {first} and {second} both have a plugin header")]
    #[code(
        hint = "name the directory like the main file of the plugin, or state the guest path: --mount DIR:/wordpress/wp-content/plugins/NAME or DIR:/workspace/NAME"
    )]
    TwoPlugins {
        /// Real path of the directory.
        directory: PathBuf,
        /// First file with a plugin header.
        first: String,
        /// Second file with a plugin header.
        second: String,
    },
    /// The directory has a plugin header and a theme header.
    #[error(
        "{directory} is a plugin and a theme: {plugin} has a plugin header and style.css a theme header"
    )]
    #[code(
        hint = "remove one header, or state the guest path: --mount DIR:/wordpress/wp-content/plugins/NAME"
    )]
    PluginAndTheme {
        /// Real path of the directory.
        directory: PathBuf,
        /// File with the plugin header.
        plugin: String,
    },
    /// The directory belongs to a whole site, e.g. its root or its directory of plugins.
    #[error(
        "{directory} belongs to a whole WordPress site and is not one project; it contains {}",
        listed(.members)
    )]
    #[code(hint = "cd into one plugin or theme, or state it: --mount DIR")]
    WholeSite {
        /// Real path of the directory.
        directory: PathBuf,
        /// Plugins and themes of the site, e.g. `plugins/hello`.
        members: Vec<String>,
    },
}

fn listed(members: &[String]) -> String {
    if members.is_empty() {
        return "no plugin and no theme".to_owned();
    }
    let more = members.len().saturating_sub(MAX_LISTED);
    let first: Vec<&str> = members
        .iter()
        .take(MAX_LISTED)
        .map(String::as_str)
        .collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_about_a_whole_site_names_at_most_ten_plugins_and_themes_and_counts_the_rest() {
        let message = |count: usize| {
            let members = (0..count).map(|n| format!("plugins/p{n}")).collect();
            let directory = PathBuf::from("/srv/site");
            ProjectError::WholeSite { directory, members }
                .body()
                .message
        };
        assert!(message(0).ends_with("it contains no plugin and no theme"));
        assert!(message(1).ends_with("it contains plugins/p0"));
        assert!(message(10).ends_with(", plugins/p9"));
        assert!(message(12).ends_with(", plugins/p9 and 2 more"));
    }
}

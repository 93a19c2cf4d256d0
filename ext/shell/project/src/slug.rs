//! Chooses the name of a project's directory in the guest.

use super::place::name;
use std::path::Path;

/// Maximum length of a slug in bytes.
const MAX_BYTES: usize = 100;
/// Name of the directory in the guest if nothing in the project is usable as a name.
const FALLBACK: &str = "project";

/// Common names of directories for checkouts, which therefore cannot be the slug of a plugin or
/// theme.
const GENERIC: &[&str] = &[
    "app",
    "branches",
    "build",
    "checkout",
    "code",
    "dist",
    "html",
    "index",
    "main",
    "master",
    "plugin",
    "plugins",
    "project",
    "projects",
    "repo",
    "source",
    "src",
    "svn",
    "tags",
    "theme",
    "themes",
    "trunk",
    "wordpress",
    "work",
    "workspace",
    "workspaces",
    "wp-content",
];

/// The name of a plugin or theme directory in the guest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slug {
    pub text: String,
    /// Where the slug comes from, if it is not the name of the directory.
    pub origin: Option<String>,
}

/// Chooses the slug of a plugin or theme: in a Subversion layout the name of the directory above
/// `trunk`, `tags` or `branches`, otherwise the name of its directory; if that is not usable, the
/// text domain, then the name of the plugin's file without `.php`, then a name made from that of
/// the directory.
pub(super) fn choose(directory: &Path, text_domain: Option<&str>, stem: Option<&str>) -> Slug {
    let given = name(directory);
    if let Some((slug, origin)) = above_subversion(directory) {
        return Slug {
            text: slug.to_owned(),
            origin: Some(origin),
        };
    }
    if is_usable(given) {
        return Slug {
            text: given.to_owned(),
            origin: None,
        };
    }
    let chosen = |text: &str, what: &str| Slug {
        text: text.to_owned(),
        origin: Some(format!(
            "{what}, because the directory name {given:?} is not usable as a slug"
        )),
    };
    if let Some(domain) = text_domain.filter(|domain| is_usable(domain)) {
        return chosen(domain, "the slug is its text domain");
    }
    if let Some(stem) = stem.filter(|stem| is_usable(stem)) {
        return chosen(stem, "the slug is the name of its file");
    }
    match safe(given) {
        Some(text) if text == given => Slug { text, origin: None },
        Some(text) => chosen(&text, "the slug is made from the directory name"),
        None => chosen(FALLBACK, "the slug is a fixed name"),
    }
}

/// Converts a name to a valid name for a directory below `/workspace` in the guest.
pub(super) fn workspace_name(given: &str) -> String {
    safe(given).unwrap_or_else(|| FALLBACK.to_owned())
}

/// Returns the slug in a layout of the wp.org Subversion repository: `<slug>/trunk`,
/// `<slug>/tags/<version>`, `<slug>/branches/<name>`.
pub(super) fn subversion_slug(directory: &Path) -> Option<&str> {
    let parent = directory.parent()?;
    let slug = match (name(directory), name(parent)) {
        ("trunk", slug) => slug,
        // Any project can have a directory `tags`; it is Subversion's only beside `trunk` or
        // `.svn`.
        (_, "tags" | "branches") => {
            let root = parent.parent()?;
            let layout = ["trunk", ".svn"]
                .iter()
                .any(|sign| root.join(sign).is_dir());
            layout.then(|| name(root))?
        }
        _ => return None,
    };
    is_usable(slug).then_some(slug)
}

fn above_subversion(directory: &Path) -> Option<(&str, String)> {
    let slug = subversion_slug(directory)?;
    let origin = format!(
        "the slug is the name of the directory above {}",
        match name(directory) {
            "trunk" => "trunk",
            _ => directory.parent().map_or("", name),
        }
    );
    Some((slug, origin))
}

/// Returns whether a text is a valid slug, by the same rule as for slugs of components
/// (`wp_codebox_policy::check_components`).
pub(super) fn is_slug(text: &str) -> bool {
    text.len() <= MAX_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_slug_char)
        && !text.ends_with(".php")
}

fn is_slug_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_usable(text: &str) -> bool {
    is_slug(text) && !GENERIC.iter().any(|name| text.eq_ignore_ascii_case(name))
}

/// Converts a text to a slug; `None` if it contains no ASCII letter or digit.
fn safe(text: &str) -> Option<String> {
    let mut slug = String::new();
    for c in text.chars() {
        if is_slug_char(c) {
            slug.push(c);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let mut slug = slug.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    // Only ASCII is left, so every byte is a character.
    slug = &slug[..slug.len().min(MAX_BYTES)];
    loop {
        let shorter = slug.trim_end_matches(['-', '.']);
        let shorter = shorter.strip_suffix(".php").unwrap_or(shorter);
        if shorter == slug {
            break;
        }
        slug = shorter;
    }
    is_slug(slug).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{Component, ComponentLoad, MountRequest};
    use wp_codebox_policy::{check_components, check_mounts, defaults};

    /// Returns whether the policy accepts a slug for a component and for a mount.
    fn policy_accepts(slug: &str) -> bool {
        let component = Component {
            slug: slug.to_owned(),
            source: "/srv/x".to_owned(),
            load_as: ComponentLoad::Plugin,
            entry: None,
            activate: true,
            required: true,
            readiness_probe: None,
        };
        let mount = |root: &str| MountRequest {
            source: "/srv/x".to_owned(),
            target: format!("{root}/{slug}"),
            mode: wp_codebox_contracts::MountAccess::Readwrite,
            exclude: vec![],
            git: wp_codebox_contracts::GitChoice::Auto,
            metadata: None,
        };
        let policy = defaults(vec![]);
        let mounts = ["/wordpress/wp-content/plugins", "/workspace"].map(mount);
        check_components(&[component], &[], &policy).is_ok()
            && check_mounts(&mounts, &policy).is_ok()
    }

    #[test]
    fn is_slug_accepts_exactly_the_texts_that_the_policy_accepts() {
        for text in [
            "hello",
            "my-plugin-main",
            "A_1.x",
            "4ever",
            "a.php.b",
            "",
            ".",
            "..",
            ".a",
            "-a",
            "_a",
            "a b",
            "a/b",
            "a:b",
            "a\n",
            "a.php",
            "é",
            &"a".repeat(100),
            &"a".repeat(101),
        ] {
            assert_eq!(is_slug(text), policy_accepts(text), "{text:?}");
        }
    }

    #[test]
    fn unsafe_names_become_slugs_that_the_policy_accepts() {
        for (given, expected) in [
            ("hello", "hello"),
            ("my plugin", "my-plugin"),
            ("a:b  c", "a-b-c"),
            (".config", "config"),
            ("--x--", "x"),
            ("Größe", "Gr-e"),
            ("a.php", "a"),
            ("a.php.php", "a"),
            ("a.-.php", "a"),
            ("плагин", "project"),
            ("...", "project"),
            ("", "project"),
            ("\u{202e}evil\u{1b}[0m", "evil-0m"),
        ] {
            let name = workspace_name(given);
            assert_eq!(name, expected, "{given:?}");
            assert!(policy_accepts(&name), "{given:?}");
        }
        for length in [97, 98, 99, 100, 101, 200] {
            let name = workspace_name(&format!("{}.php", "a".repeat(length)));
            assert!(policy_accepts(&name), "{length}: {name}");
        }
    }

    /// Replacements of an unusable name are the text domain, the name of the main file and a
    /// corrected name, in this order.
    #[test]
    fn slug_is_the_directory_name_unless_it_is_unusable_or_generic() {
        let text = |directory: &str, domain: Option<&str>, stem: Option<&str>| {
            let slug = choose(Path::new(directory), domain, stem);
            (slug.text, slug.origin.is_some())
        };
        let own = |text: &str| (text.to_owned(), false);
        let other = |text: &str| (text.to_owned(), true);
        for (directory, domain, stem, expected) in [
            ("/x/hello", Some("greet"), Some("main"), own("hello")),
            (
                "/x/my-plugin-main",
                Some("my-plugin"),
                None,
                own("my-plugin-main"),
            ),
            (
                "/x/greet/trunk",
                Some("hello"),
                Some("main"),
                other("greet"),
            ),
            ("/src/trunk", Some("hello"), Some("main"), other("hello")),
            ("/x/src", Some("hello"), None, other("hello")),
            ("/x/workspace", Some("hello"), None, other("hello")),
            ("/x/my plugin", Some("hello"), None, other("hello")),
            (
                "/x/my plugin",
                Some("no slug"),
                Some("main-file"),
                other("main-file"),
            ),
            ("/x/my plugin", None, Some("plugin"), other("my-plugin")),
            ("/x/my plugin", Some(".."), None, other("my-plugin")),
            ("/x/src", Some("trunk"), Some("plugin"), own("src")),
            ("/x/плагин", None, None, other("project")),
        ] {
            assert_eq!(text(directory, domain, stem), expected, "{directory}");
        }
    }

    #[test]
    fn slug_is_the_directory_above_tags_or_branches_only_in_a_subversion_layout() {
        let temp = tempfile::tempdir().unwrap();
        let layout = temp.path().join("hello");
        for part in ["trunk", "tags/1.2", "branches/next"] {
            std::fs::create_dir_all(layout.join(part)).unwrap();
        }
        for part in ["trunk", "tags/1.2", "branches/next"] {
            let slug = choose(&layout.join(part), None, None);
            assert_eq!(slug.text, "hello", "{part}");
        }
        let origin = choose(&layout.join("tags/1.2"), None, None).origin.unwrap();
        assert_eq!(origin, "the slug is the name of the directory above tags");
        let elsewhere = temp.path().join("cloud/tags/1.2");
        std::fs::create_dir_all(&elsewhere).unwrap();
        assert_eq!(choose(&elsewhere, None, None).text, "1.2");
    }
}

//! Changed paths that programs of the host or of the site run or obey without being asked to run the
//! changed code, such as git, editors, web servers and WordPress.
//!
//! A path is judged by its name alone, wherever it is: an agent may prepare a layout in several runs,
//! and a tool may be started in any directory.

use serde::Serialize;
use wp_codebox_contracts::ChangedFile;
use wp_codebox_contracts::terminal_text::is_hidden;

/// Whether an apply needs a confirmation of its own for files with a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    /// A program reads the file by itself: at each request, command or change of directory.
    Needed,
    /// Somebody must start the program that reads the file.
    NotNeeded,
}

/// A kind of risky path.
struct Kind {
    flag: &'static str,
    confirmation: Confirmation,
    /// What reads the file, in one sentence.
    sentence: &'static str,
    matches: fn(&Name<'_>) -> bool,
}

/// A path for comparisons: lower case and without ignored characters, as case-insensitive file
/// systems compare names.
struct Name<'p> {
    /// All parts of the path; the last one is `base`.
    parts: &'p [&'p str],
    base: &'p str,
}

impl Name<'_> {
    fn is_one_of(&self, names: &[&str]) -> bool {
        names.contains(&self.base)
    }

    fn ends_with(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| self.base.ends_with(end))
    }

    fn starts_with(&self, begins: &[&str]) -> bool {
        begins.iter().any(|begin| self.base.starts_with(begin))
    }

    /// Whether the path is one of these directories or below one.
    fn is_within(&self, directories: &[&str]) -> bool {
        self.parts.iter().any(|part| directories.contains(part))
    }

    fn is_directly_below(&self, directory: &str) -> bool {
        self.parts.len() > 1 && self.parts[self.parts.len() - 2] == directory
    }
}

/// Drop-ins from `_get_dropins()` of WordPress core with distinctive names. Plugins copy drop-ins
/// into `wp-content`, so these names are flagged in every directory.
const DROP_INS: [&str; 9] = [
    "advanced-cache.php",
    "blog-deleted.php",
    "blog-inactive.php",
    "blog-suspended.php",
    "db-error.php",
    "fatal-error-handler.php",
    "object-cache.php",
    "php-error.php",
    "sunrise.php",
];

/// Names that the hooks of a git repository have.
const GIT_HOOKS: [&str; 15] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
];

const KINDS: [Kind; 14] = [
    Kind {
        flag: "server-configuration",
        confirmation: Confirmation::Needed,
        sentence: "The web server or PHP obeys this file in every request to its directory.",
        matches: |name| {
            name.is_one_of(&[
                ".htaccess",
                ".htpasswd",
                ".user.ini",
                "php.ini",
                "web.config",
            ])
        },
    },
    Kind {
        flag: "must-use-plugin",
        confirmation: Confirmation::Needed,
        sentence: "WordPress runs this file in every request, without activation.",
        // The path `mu-plugins` itself is flagged too, because it may be a symbolic link.
        matches: |name| name.is_within(&["mu-plugins"]),
    },
    Kind {
        flag: "drop-in",
        confirmation: Confirmation::Needed,
        sentence: "WordPress runs this file in every request, in place of code of its own.",
        matches: |name| {
            // Names that other files have as well are flagged only directly below `wp-content`.
            name.is_one_of(&DROP_INS)
                || (name.is_directly_below("wp-content")
                    && name.is_one_of(&["db.php", "install.php", "maintenance.php"]))
        },
    },
    Kind {
        flag: "git-repository",
        confirmation: Confirmation::Needed,
        sentence: "Git takes a directory with such files for a repository and runs the programs that its configuration names; editors and shell prompts start git by themselves.",
        matches: |name| {
            // `git~1` is the short name of `.git` on Windows.
            name.is_within(&[".git", "git~1"])
                // A bare repository is any directory with HEAD, objects and refs.
                || name.is_one_of(&["head", "config", "config.worktree", "commondir", "gitdir", "packed-refs"])
                || (name.is_directly_below("hooks") && name.is_one_of(&GIT_HOOKS))
        },
    },
    Kind {
        flag: "git-hook",
        confirmation: Confirmation::Needed,
        sentence: "Git runs this file, or what it names, at a commit, checkout or push if the hooks of the project are installed.",
        matches: |name| {
            name.is_within(&[".husky", ".githooks", ".git-hooks"])
                || name.starts_with(&[".pre-commit-config.", "lefthook.", ".lefthook.", "grumphp."])
                || name.is_one_of(&["captainhook.json", ".gitmodules"])
        },
    },
    Kind {
        flag: "editor-configuration",
        confirmation: Confirmation::Needed,
        sentence: "Editors and coding agents obey this file when they open the directory; it can start programs.",
        matches: |name| {
            name.is_within(&[
                ".vscode",
                ".idea",
                ".fleet",
                ".zed",
                ".vim",
                ".nvim",
                ".devcontainer",
                ".cursor",
                ".claude",
                ".codex",
                ".gemini",
                ".continue",
            ]) || name.ends_with(&[".code-workspace", ".sublime-project"])
                || name.is_one_of(&[
                    ".exrc",
                    ".vimrc",
                    ".nvimrc",
                    ".nvim.lua",
                    ".lvimrc",
                    ".dir-locals.el",
                    ".devcontainer.json",
                    ".mcp.json",
                ])
        },
    },
    Kind {
        flag: "agent-instructions",
        confirmation: Confirmation::NotNeeded,
        sentence: "Coding agents follow the instructions in this file.",
        matches: |name| {
            name.is_one_of(&[
                "agents.md",
                "claude.md",
                "gemini.md",
                "skill.md",
                ".cursorrules",
                ".windsurfrules",
            ])
        },
    },
    Kind {
        flag: "shell-environment",
        confirmation: Confirmation::Needed,
        sentence: "A shell or a version manager runs or obeys this file when somebody enters the directory.",
        matches: |name| {
            name.is_one_of(&[
                ".envrc",
                ".autoenv",
                ".autoenv.zsh",
                ".env.zsh",
                "mise.toml",
                ".mise.toml",
                "shell.nix",
                "flake.nix",
                "devenv.nix",
            ]) || name.is_within(&[".direnv", ".mise"])
        },
    },
    Kind {
        flag: "ci-configuration",
        confirmation: Confirmation::NotNeeded,
        sentence: "A CI service runs this file after a push, with the secrets of the project.",
        matches: |name| {
            name.is_within(&[
                ".github",
                ".gitlab",
                ".circleci",
                ".buildkite",
                ".forgejo",
                ".gitea",
                ".woodpecker",
            ]) || name.starts_with(&[
                ".gitlab-ci.",
                ".travis.",
                "azure-pipelines.",
                "bitbucket-pipelines.",
                "jenkinsfile",
                ".drone.",
                ".woodpecker.",
                "appveyor.",
                ".appveyor.",
            ])
        },
    },
    Kind {
        flag: "package-scripts",
        confirmation: Confirmation::NotNeeded,
        sentence: "Composer or npm runs the scripts and plugins that this file names, also during an install or update.",
        matches: |name| {
            name.is_one_of(&[
                "composer.json",
                "composer.lock",
                "package.json",
                "package-lock.json",
                "pnpm-lock.yaml",
                "yarn.lock",
                ".npmrc",
                ".yarnrc",
                ".yarnrc.yml",
                ".pnpmfile.cjs",
                "auth.json",
            ])
        },
    },
    Kind {
        flag: "build-file",
        confirmation: Confirmation::NotNeeded,
        sentence: "A build, test or container tool runs this file, or what it names, when it is started in this directory.",
        matches: |name| {
            name.is_one_of(&[
                "makefile",
                "gnumakefile",
                "justfile",
                "rakefile",
                "vagrantfile",
                "dockerfile",
                "containerfile",
                ".wp-env.json",
                ".wp-env.override.json",
                "wp-cli.yml",
                "wp-cli.local.yml",
                "phpunit.xml",
                "phpunit.xml.dist",
                "phpunit.dist.xml",
                "phpstan.neon",
                "phpstan.neon.dist",
                "psalm.xml",
                "rector.php",
                "phpcs.xml",
                "phpcs.xml.dist",
                ".phpcs.xml",
                ".phpcs.xml.dist",
            ]) || name.ends_with(&[
                ".mk",
                ".config.js",
                ".config.cjs",
                ".config.mjs",
                ".config.ts",
            ]) || name.starts_with(&[
                "gulpfile.",
                "gruntfile.",
                "docker-compose.",
                "compose.y",
                "taskfile.",
                "robofile.",
                ".eslintrc",
                ".babelrc",
                ".stylelintrc",
                ".php-cs-fixer.",
                ".lando.",
                "castor.",
            ]) || name.is_within(&[".ddev"])
        },
    },
    Kind {
        flag: "autoload-file",
        confirmation: Confirmation::NotNeeded,
        sentence: "PHP runs this file in every request that loads the autoloader.",
        matches: |name| {
            name.starts_with(&["autoload_", "autoload."])
                || (name.is_within(&["composer"])
                    && name.is_one_of(&[
                        "classloader.php",
                        "installedversions.php",
                        "platform_check.php",
                    ]))
        },
    },
    Kind {
        flag: "executable-archive",
        confirmation: Confirmation::NotNeeded,
        sentence: "PHP can run the code in this archive.",
        // PHP reads `phar://x.phar.zip` like `x.phar`.
        matches: |name| name.base.ends_with(".phar") || name.base.contains(".phar."),
    },
    Kind {
        flag: "unusual-php-file",
        confirmation: Confirmation::NotNeeded,
        sentence: "Common configurations of web servers run this file as PHP.",
        matches: |name| {
            name.ends_with(&[
                ".phtml", ".pht", ".phps", ".php2", ".php3", ".php4", ".php5", ".php6", ".php7",
                ".php8",
            ])
        },
    },
];

/// Flags of the review that do not depend on the name of a path, with their sentences.
const OTHERS: [(&str, &str); 8] = [
    (
        "secrets-redacted",
        "A secret was found in the output and replaced.",
    ),
    ("checks-failed", "A check did not pass."),
    (
        "paths-left-out",
        "The bundle does not contain all changes of the run.",
    ),
    (
        "suspicious-full-file-rewrite",
        "Most lines of the file changed.",
    ),
    (
        "changed-test-file",
        "A changed test can pass although the code is wrong.",
    ),
    ("became-executable", "The file can be run as a program now."),
    ("symlink", "A symbolic link can lead to a file elsewhere."),
    ("binary", "The content cannot be read as text."),
];

/// A changed path that a program runs or obeys by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathRisk {
    /// Path as in `changed-files.json`.
    pub path: String,
    /// Machine-readable kind, such as `git-repository`.
    pub flag: &'static str,
    /// What reads the file, in one sentence.
    pub sentence: &'static str,
    /// Whether an apply needs a confirmation of its own, because a program reads the file by itself.
    pub confirm: bool,
}

/// Returns the risky ones of changed paths, in their order, each with all its flags.
#[must_use]
pub fn path_risks(files: &[ChangedFile]) -> Vec<PathRisk> {
    let risks_of = |file: &ChangedFile| {
        let path = file.path.clone();
        kinds_of(&path)
            .map(move |kind| PathRisk {
                path: path.clone(),
                flag: kind.flag,
                sentence: kind.sentence,
                confirm: kind.confirmation == Confirmation::Needed,
            })
            .collect::<Vec<_>>()
    };
    files.iter().flat_map(risks_of).collect()
}

/// Returns the flags of a path in `changed-files.json`.
pub(crate) fn flags_of(path: &str) -> impl Iterator<Item = &'static str> {
    kinds_of(path).map(|kind| kind.flag)
}

/// Returns the sentence of a risk flag, with or without its path.
pub(crate) fn sentence_of(flag: &str) -> Option<(&str, &'static str)> {
    let name = flag.split_once(':').map_or(flag, |(name, _)| name);
    let of_paths = KINDS.iter().map(|kind| (kind.flag, kind.sentence));
    let found = of_paths.chain(OTHERS).find(|(flag, _)| *flag == name);
    found.map(|(_, sentence)| (name, sentence))
}

fn kinds_of(path: &str) -> std::vec::IntoIter<&'static Kind> {
    // A path that is not UTF-8 is C-quoted, with quotes around the whole path.
    let shown: String = path
        .trim_matches('"')
        .chars()
        .filter(|c| !is_hidden(*c))
        .collect();
    let lower = shown.to_lowercase();
    let parts: Vec<&str> = lower.split('/').collect();
    let name = Name {
        base: parts.last().copied().unwrap_or_default(),
        parts: &parts,
    };
    let found: Vec<&'static Kind> = KINDS.iter().filter(|kind| (kind.matches)(&name)).collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_gets_the_flags_of_the_programs_that_read_it() {
        for (path, flags) in [
            ("plugins/p/.htaccess", "server-configuration"),
            ("plugins/p/x/.HTaccess", "server-configuration"),
            ("plugins/p/.htpasswd", "server-configuration"),
            ("plugins/p/.user.ini", "server-configuration"),
            ("plugins/p/php.ini", "server-configuration"),
            ("plugins/p/web.config", "server-configuration"),
            ("plugins/p/x.phar", "executable-archive"),
            ("plugins/p/x.PHAR", "executable-archive"),
            ("plugins/p/x.phar.zip", "executable-archive"),
            ("plugins/p/x.phtml", "unusual-php-file"),
            ("plugins/p/x.php7", "unusual-php-file"),
            ("mu-plugins", "must-use-plugin"),
            ("mu-plugins/x.php", "must-use-plugin"),
            (
                "mu-plugins/x/.htaccess",
                "server-configuration must-use-plugin",
            ),
            ("object-cache.php", "drop-in"),
            ("plugins/p/advanced-cache.php", "drop-in"),
            ("db.php", "drop-in"),
            ("maintenance.php", "drop-in"),
            // A bare repository and a repository, at any depth and with names that other file systems take for these.
            ("plugins/p/docs/a/HEAD", "git-repository"),
            ("plugins/p/docs/a/config", "git-repository"),
            ("plugins/p/docs/a/hooks/post-checkout", "git-repository"),
            ("plugins/p/.git", "git-repository"),
            ("plugins/p/.GIT/info/x", "git-repository"),
            ("plugins/p/.g\u{200c}it/x", "git-repository"),
            ("plugins/p/git~1/x", "git-repository"),
            ("plugins/p/.husky/pre-push", "git-hook"),
            ("plugins/p/.pre-commit-config.yaml", "git-hook"),
            ("plugins/p/.claude/settings.json", "editor-configuration"),
            ("plugins/p/.vscode/tasks.json", "editor-configuration"),
            ("plugins/p/sub/.idea/workspace.xml", "editor-configuration"),
            ("plugins/p/x.code-workspace", "editor-configuration"),
            ("plugins/p/AGENTS.md", "agent-instructions"),
            ("plugins/p/.envrc", "shell-environment"),
            ("plugins/p/mise.toml", "shell-environment"),
            ("plugins/p/.github/workflows/x.yml", "ci-configuration"),
            ("plugins/p/.gitlab-ci.yml", "ci-configuration"),
            ("plugins/p/Jenkinsfile", "ci-configuration"),
            ("plugins/p/composer.json", "package-scripts"),
            ("plugins/p/package.json", "package-scripts"),
            ("plugins/p/Makefile", "build-file"),
            ("plugins/p/webpack.config.js", "build-file"),
            ("plugins/p/wp-cli.yml", "build-file"),
            (
                "plugins/p/vendor/composer/autoload_files.php",
                "autoload-file",
            ),
            ("plugins/p/vendor/autoload.php", "autoload-file"),
            // Controls: paths without flags.
            ("plugins/p/db.php", ""),
            ("plugins/p/install.php", ""),
            ("plugins/p/htaccess.md", ""),
            ("plugins/p/x.htaccess", ""),
            ("plugins/p/user.ini", ""),
            ("plugins/p/phar.php", ""),
            ("plugins/p/x.php", ""),
            ("plugins/p/x.phpt", ""),
            ("plugins/p/my-mu-plugins/x.php", ""),
            ("plugins/p/config.php", ""),
            ("plugins/p/head.php", ""),
            ("plugins/p/objects/order.php", ""),
            ("plugins/p/hooks/pre-commit.php", ""),
            ("plugins/p/composer/x.php", ""),
            ("plugins/p/.gitignore", ""),
        ] {
            let found: Vec<_> = flags_of(&format!("/wordpress/wp-content/{path}")).collect();
            assert_eq!(found.join(" "), flags, "{path}");
        }
        let quoted = "\"/wordpress/wp-content/plugins/p/\\377/.htaccess\"";
        assert!(flags_of(quoted).eq(["server-configuration"]));
    }

    #[test]
    fn every_flag_has_a_sentence_and_no_two_flags_have_the_same() {
        let flags = KINDS
            .iter()
            .map(|kind| kind.flag)
            .chain(OTHERS.map(|(flag, _)| flag));
        let sentences: std::collections::BTreeSet<_> = flags
            .map(|flag| {
                let (found, sentence) = sentence_of(flag).unwrap();
                assert_eq!(
                    sentence_of(&format!("{flag}:/a:b")),
                    Some((found, sentence))
                );
                sentence
            })
            .collect();
        assert_eq!(sentences.len(), KINDS.len() + OTHERS.len());
        assert_eq!(sentence_of("unknown:/a"), None);
    }
}

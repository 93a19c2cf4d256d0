//! Converts a Composer script to a command line, if the script is a single call of a program of the
//! project. The command then runs without Composer, which could run other scripts and need the
//! network.

use super::folder::Folder;
use std::borrow::Cow;

/// Directory of the programs that a project's dependencies bring.
const BIN: &str = "vendor/bin";
/// Maximum length of a script in bytes.
const MAX_BYTES: usize = 1000;
/// Characters that a shell interprets. A script that contains one, even quoted, is not converted:
/// checks run without a shell, so the character could have a different effect.
const SHELL: &[char] = &[
    '&', '|', ';', '$', '`', '<', '>', '(', ')', '{', '}', '[', ']', '*', '?', '~', '#', '!', '\\',
];

/// A command from a project's Composer script or configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// File name of the program, e.g. `phpunit`.
    pub tool: String,
    /// Command line with shell quoting.
    pub line: String,
}

/// Returns the command of a script; `None` if the script is not a single call of a program of the
/// project.
pub(super) fn command(script: &str, folder: &Folder) -> Option<Command> {
    let plain = |c: char| !SHELL.contains(&c) && !c.is_control();
    if script.len() > MAX_BYTES || !script.chars().all(plain) {
        return None;
    }
    let words = shell_words::split(script).ok()?;
    let (first, rest) = words.split_first()?;
    // Composer would replace an argument of the form `@name`.
    if rest.iter().any(|word| word.starts_with('@')) {
        return None;
    }
    if first == "@php" {
        return php(rest, folder);
    }
    let program = vendor_program(first, folder).filter(|program| folder.is_program(program))?;
    let line = std::iter::once(&program).chain(rest);
    Some(Command {
        tool: tool(&program).to_owned(),
        line: joined(line),
    })
}

/// Returns the command of `@php [-d SETTING]… FILE …`.
fn php(words: &[String], folder: &Folder) -> Option<Command> {
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|word| word.starts_with("-d")) {
        at += if option == "-d" { 2 } else { 1 };
    }
    let (settings, rest) = words.split_at_checked(at)?;
    let (given, arguments) = rest.split_first()?;
    if given.starts_with('-') {
        return None;
    }
    let file = vendor_program(given, folder)
        .or_else(|| Some(given.clone()).filter(|file| folder.is_file(file)))?;
    let php = "php".to_owned();
    let line = std::iter::once(&php)
        .chain(settings)
        .chain([&file])
        .chain(arguments);
    Some(Command {
        tool: tool(&file).to_owned(),
        line: joined(line),
    })
}

/// Joins words to a command line for the user to read and confirm. Unlike `shell_words::join` it
/// does not quote options such as `--level=5`.
fn joined<'w>(words: impl Iterator<Item = &'w String>) -> String {
    let bare = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-=:,./+%@".contains(c);
        !word.is_empty() && word.chars().all(plain)
    };
    let words: Vec<Cow<'w, str>> = words
        .map(|word| match bare(word) {
            true => Cow::Borrowed(word.as_str()),
            false => shell_words::quote(word),
        })
        .collect();
    words.join(" ")
}

/// Returns the path of a program in the project's `vendor/bin`, where Composer searches programs of
/// scripts first.
fn vendor_program(word: &str, folder: &Folder) -> Option<String> {
    let word = word.strip_prefix("./").unwrap_or(word);
    let path = match word.strip_prefix("vendor/bin/") {
        Some(_) => word.to_owned(),
        None => format!("{BIN}/{word}"),
    };
    let name = path.strip_prefix(BIN)?.strip_prefix('/')?;
    let simple = !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..");
    (simple && folder.is_file(&path)).then_some(path)
}

/// Returns the name of a tool from the path of its program.
pub(super) fn tool(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_suffix(".phar").unwrap_or(name);
    name.strip_suffix(".php").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/usr/bin/env php\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn project() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for name in ["phpunit", "phpcs", "phpstan.phar"] {
            program(&temp.path().join(BIN).join(name));
        }
        program(&temp.path().join("tests/run.php"));
        fs::write(temp.path().join(BIN).join("plain"), "").unwrap();
        symlink("/usr/bin/env", temp.path().join(BIN).join("outside")).unwrap();
        symlink("../../tests/run.php", temp.path().join(BIN).join("inside")).unwrap();
        temp
    }

    #[test]
    fn composer_script_with_one_program_becomes_a_command_line_with_the_path_of_the_program() {
        let temp = project();
        let folder = Folder::open(temp.path()).unwrap();
        for (script, tool, line) in [
            ("phpunit", "phpunit", "vendor/bin/phpunit"),
            ("vendor/bin/phpunit", "phpunit", "vendor/bin/phpunit"),
            ("./vendor/bin/phpcs -s .", "phpcs", "vendor/bin/phpcs -s ."),
            (
                "phpunit --filter='a b'  --colors=never",
                "phpunit",
                "vendor/bin/phpunit '--filter=a b' --colors=never",
            ),
            (
                "phpunit --filter '' \"it's\"",
                "phpunit",
                "vendor/bin/phpunit --filter '' 'it'\\''s'",
            ),
            ("inside", "inside", "vendor/bin/inside"),
            ("@php tests/run.php fast", "run", "php tests/run.php fast"),
            (
                "@php -d memory_limit=1G -dx=1 phpstan.phar analyse",
                "phpstan",
                "php -d memory_limit=1G -dx=1 vendor/bin/phpstan.phar analyse",
            ),
            // PHP reads the file, so it need not be executable.
            ("@php vendor/bin/plain", "plain", "php vendor/bin/plain"),
        ] {
            let command = command(script, &folder).unwrap();
            assert_eq!((command.tool.as_str(), command.line.as_str()), (tool, line));
        }
    }

    #[test]
    fn scripts_that_need_a_shell_or_composer_or_are_outside_the_project_are_refused() {
        let temp = project();
        let folder = Folder::open(temp.path()).unwrap();
        for script in [
            "",
            "phpunit && phpcs",
            "phpunit || true",
            "phpunit | tee log",
            "phpunit; phpcs",
            "phpunit & phpcs",
            "phpunit > log",
            "phpunit < in",
            "phpunit $HOME",
            "phpunit `id`",
            "phpunit $(id)",
            "phpunit\nphpcs",
            "phpcs *.php",
            "phpcs ~/x",
            "phpunit --filter='a|b'",
            "'phpunit",
            "XDEBUG_MODE=off phpunit",
            "@test",
            "@composer install",
            "@putenv A=b",
            "phpunit @additional_args",
            "@php",
            "@php -r 1",
            "@php -d",
            "@php -d a=b",
            "@php @phpunit",
            "@php missing.php",
            "@php /etc/passwd",
            "@php ../x.php",
            "@phpunit",
            "Acme\\Tests::run",
            "Tests::run",
            "sh -c phpunit",
            "/usr/bin/env phpunit",
            "vendor/bin/../../tests/run.php",
            "vendor/bin/",
            "vendor/bin/missing",
            "tests/run.php",
            "plain",
            "outside",
            "..",
        ] {
            assert_eq!(command(script, &folder), None, "{script:?}");
        }
        let long = format!("phpunit {}", "x".repeat(MAX_BYTES));
        assert_eq!(command(&long, &folder), None);
        assert!(command(&long[..MAX_BYTES], &folder).is_some());
    }
}

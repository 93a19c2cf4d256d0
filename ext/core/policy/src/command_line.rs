//! Command lines of agents and checks: they are split by the rules of a shell, but no shell runs
//! them; host files that they name are put into the guest.

use std::collections::BTreeMap;
use wp_codebox_contracts::{CodedError, MountRequest, StagedFile};

/// Guest directory of host files that command lines name.
const STAGED: &str = "/run/codebox/staged";
/// Directories whose files are never put into the guest: the guest has its own, or they contain no
/// programs of the user.
const OF_GUEST: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/dev",
    "/proc",
    "/sys",
    "/workspace",
    "/wordpress",
    "/run/codebox",
    "/opt/codebox",
];
/// Directories with keys and passwords.
const SECRET_DIRECTORIES: &[&str] = &[".ssh", ".gnupg", ".aws", ".kube", ".docker"];
/// Ends of the names of files with keys.
const SECRET_ENDS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".kdbx"];

/// Reason why a command line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum CommandLineError {
    /// The line has an open quote or ends with a backslash.
    #[error(
        "the command line has a quote that is not closed, or ends with a backslash; correct it"
    )]
    #[code(InputInvalid)]
    Open,
    /// The line has syntax that only a shell understands.
    #[error(
        "{syntax} in a command line needs a shell, but none runs it; quote it, or write {instead}"
    )]
    #[code(InputInvalid)]
    Shell {
        /// The syntax.
        syntax: String,
        /// Command line that starts a shell.
        instead: String,
    },
    /// The line names a host file whose path looks like that of a secret.
    #[error(
        "the path of the file {name} looks like that of a secret, so the file is not put into the sandbox; leave it out of the command line, or name another file"
    )]
    #[code(MountDenied)]
    Secret {
        /// Name of the file.
        name: String,
    },
}

/// Splits the command line of an agent or check.
///
/// # Errors
/// Fails if a quote is open, or if the line has unquoted syntax that a shell would not pass to the
/// program: `;`, `&`, `|`, `<`, `>`, a backquote, a variable, or an assignment before the program.
pub fn command_words(line: &str) -> Result<Vec<String>, CommandLineError> {
    let words = shell_words::split(line).map_err(|_| CommandLineError::Open)?;
    match shell_syntax(line) {
        None => Ok(words),
        Some(syntax) => Err(CommandLineError::Shell {
            syntax,
            instead: format!("sh -c {}", shell_words::quote(line.trim())),
        }),
    }
}

/// Returns the first unquoted part of a well-formed line that only a shell understands.
fn shell_syntax(line: &str) -> Option<String> {
    let assigned = line
        .split_whitespace()
        .next()
        .and_then(|word| word.split_once('='));
    if let Some((name, _)) = assigned.filter(|(name, _)| is_variable(name)) {
        return Some(format!("{name}=…"));
    }
    let mut quote = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                rest.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, ';' | '&' | '|' | '<' | '>' | '`') => {
                let next = rest.clone().next().filter(|next| *next == c);
                return Some(
                    next.into_iter()
                        .fold(c.to_string(), |text, c| text + &c.to_string()),
                );
            }
            (None, '$') => {
                let name: String = rest
                    .clone()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let next = rest.clone().next();
                if is_variable(&name) || matches!(next, Some('{' | '(')) {
                    let name = if name.is_empty() { "{…}" } else { &name };
                    return Some(format!("${name}"));
                }
            }
            (None, _) => {}
        }
    }
    None
}

fn is_variable(name: &str) -> bool {
    let mut all = name.chars();
    all.next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && all.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Host files that command lines name by their absolute paths, and their paths in the guest, which
/// does not see the host's other directories.
#[derive(Debug, Default)]
pub struct HostPrograms {
    staged: BTreeMap<String, String>,
}

impl HostPrograms {
    /// Replaces the host files in a command line by guest paths: that of their mount, else that of
    /// a read-only copy. `real` returns the real path of an existing regular file.
    ///
    /// # Errors
    /// Fails for a line that [`command_words`] refuses, and for a file that looks like a secret.
    pub fn rewrite(
        &mut self,
        line: &str,
        mounts: &[MountRequest],
        real: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, CommandLineError> {
        let words = command_words(line)?;
        let changed = words
            .iter()
            .map(|word| self.word(word, mounts, real))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match changed == words {
            true => line.to_owned(),
            false => shell_words::join(changed),
        })
    }

    /// Returns the files to put into the guest.
    #[must_use]
    pub fn into_files(self) -> Vec<StagedFile> {
        let rows = self.staged.into_iter();
        rows.map(|(source, target)| StagedFile { source, target })
            .collect()
    }

    fn word(
        &mut self,
        word: &str,
        mounts: &[MountRequest],
        real: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, CommandLineError> {
        let below = |path: &str, root: &str| {
            let rest = path.strip_prefix(root.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let of_guest = |path: &str| OF_GUEST.iter().any(|root| below(path, root).is_some());
        if !word.starts_with('/') || of_guest(word) {
            return Ok(word.to_owned());
        }
        let Some(found) = real(word) else {
            return Ok(word.to_owned());
        };
        let mounted = mounts.iter().find_map(|mount| {
            let source = |path: &str| Some(mount.target.clone() + &below(path, &mount.source)?);
            source(word).or_else(|| source(&found))
        });
        if let Some(mounted) = mounted {
            return Ok(mounted);
        }
        if is_secret(word) || is_secret(&found) {
            let name = word.rsplit('/').next().unwrap_or_default().to_owned();
            return Err(CommandLineError::Secret { name });
        }
        if of_guest(&found) {
            return Ok(found);
        }
        let number = self.staged.len();
        let target = self.staged.entry(found).or_insert_with(|| {
            let name = word.rsplit('/').next().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            let name: String = name
                .chars()
                .map(|c| if plain(c) { c } else { '_' })
                .collect();
            format!("{STAGED}/{number}-{name}")
        });
        Ok(target.clone())
    }
}

fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    name.starts_with('.')
        || name.starts_with("id_")
        || name.starts_with("wp-config") && name.ends_with(".php")
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || parts.iter().any(|part| SECRET_DIRECTORIES.contains(part))
}

/// Arguments that have a meaning only in a shell.
const OPERATORS: &[&str] = &["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];

/// Returns a hint to call `sh -c`, if the arguments of a program look like shell syntax: `ls | wc` as
/// one argument names a program, `ls`, `|` and `wc` start `ls` with two arguments.
#[must_use]
pub fn shell_hint<S: AsRef<str>>(argv: &[S]) -> Option<String> {
    let (program, arguments) = argv.split_first()?;
    let program = program.as_ref();
    let is_operator = |argument: &S| OPERATORS.contains(&argument.as_ref());
    let one_word = program.contains(char::is_whitespace) || program.contains(['|', ';', '&', '>']);
    (one_word || arguments.iter().any(is_operator))
        .then(|| "there is no shell: for pipes and redirections run sh -c 'LINE'".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    #[test]
    fn unquoted_shell_syntax_is_refused_with_the_line_for_a_shell() {
        for (line, syntax) in [
            ("npm ci && npm test", "&&"),
            ("composer install; composer test", ";"),
            ("phpunit | tee log", "|"),
            ("phpunit > log 2>&1", ">"),
            ("phpunit &", "&"),
            ("php < in.php", "<"),
            ("echo $HOME", "$HOME"),
            ("echo ${HOME}", "${…}"),
            ("echo $(date)", "${…}"),
            ("echo `date`", "`"),
            ("CI=1 phpunit", "CI=…"),
            ("echo 'a' b;", ";"),
            (r#"echo "\"" ;"#, ";"),
        ] {
            let refused = command_words(line).unwrap_err();
            let CommandLineError::Shell {
                syntax: found,
                instead,
            } = refused
            else {
                panic!("{line}: {refused}");
            };
            assert_eq!(found, syntax, "{line}");
            // What the message offers is accepted and is the same line.
            let words = command_words(&instead).unwrap();
            assert_eq!(words, ["sh", "-c", line], "{line}");
        }
        assert_eq!(command_words("php 'a"), Err(CommandLineError::Open));
    }

    #[test]
    fn quoted_shell_syntax_and_characters_without_a_meaning_are_passed_to_the_program() {
        for (line, words) in [
            (
                "sh -c 'a && b > c; $d'",
                &["sh", "-c", "a && b > c; $d"][..],
            ),
            (
                r#"bash -c "for f in *; do php -l $f; done""#,
                &["bash", "-c", "for f in *; do php -l $f; done"],
            ),
            (
                r"phpunit --filter 'a|b' c\;d",
                &["phpunit", "--filter", "a|b", "c;d"],
            ),
            (
                "phpunit --filter '/x$/' y$ $/",
                &["phpunit", "--filter", "/x$/", "y$", "$/"],
            ),
            (
                "phpcs --standard=PSR12 *.php",
                &["phpcs", "--standard=PSR12", "*.php"],
            ),
            ("env CI=1 phpunit", &["env", "CI=1", "phpunit"]),
            ("", &[]),
        ] {
            assert_eq!(command_words(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn host_file_of_a_command_line_gets_the_path_of_its_mount_or_of_a_copy() {
        let real = |path: &str| match path {
            "/srv/agent one.php" | "/srv/check.sh" | "/home/me/p/tool.php" | "/usr/bin/php" => {
                Some(path.to_owned())
            }
            "/srv/link" => Some("/usr/bin/php8.2".to_owned()),
            "/home/me/.ssh/id_rsa" | "/srv/wp-config.php" | "/srv/a.PEM" => Some(path.to_owned()),
            _ => None,
        };
        let mounts = [MountRequest {
            source: "/home/me/p".to_owned(),
            target: "/wordpress/wp-content/plugins/p".to_owned(),
            mode: wp_codebox_contracts::MountAccess::Readwrite,
            exclude: Vec::new(),
            git: wp_codebox_contracts::GitChoice::None,
            metadata: None,
        }];
        let mut programs = HostPrograms::default();
        let mut rewrite = |line: &str| programs.rewrite(line, &mounts, &real);
        for (line, expected) in [
            (
                "php '/srv/agent one.php' x",
                "php /run/codebox/staged/0-agent_one.php x",
            ),
            ("sh /srv/check.sh", "sh /run/codebox/staged/1-check.sh"),
            (
                "sh /srv/check.sh --again",
                "sh /run/codebox/staged/1-check.sh --again",
            ),
            (
                "php /home/me/p/tool.php",
                "php /wordpress/wp-content/plugins/p/tool.php",
            ),
            ("/srv/link x", "/usr/bin/php8.2 x"),
            ("/usr/bin/php a.php", "/usr/bin/php a.php"),
            ("php /srv/missing 'a  b'", "php /srv/missing 'a  b'"),
        ] {
            assert_eq!(rewrite(line).unwrap(), expected);
        }
        for secret in [
            "cat /home/me/.ssh/id_rsa",
            "php /srv/wp-config.php",
            "cat /srv/a.PEM",
        ] {
            let refused = rewrite(secret).unwrap_err();
            assert_eq!(refused.body().code, ErrorCode::MountDenied, "{secret}");
        }
        assert!(matches!(
            rewrite("cat /srv/x; ls"),
            Err(CommandLineError::Shell { .. })
        ));
        let sources: Vec<String> = programs
            .into_files()
            .into_iter()
            .map(|file| file.source)
            .collect();
        assert_eq!(sources, ["/srv/agent one.php", "/srv/check.sh"]);
    }

    #[test]
    fn shell_operator_as_an_argument_or_a_command_line_in_one_argument_gets_a_hint() {
        for argv in [
            &["ls | wc"][..],
            &["ls", "|", "wc"],
            &["make", "&&", "make", "test"],
            &["echo", "x", ">", "file"],
            &["ls -l"],
        ] {
            assert!(shell_hint(argv).is_some(), "{argv:?}");
        }
    }

    #[test]
    fn arguments_of_a_plain_program_or_of_sh_get_no_shell_hint() {
        for argv in [
            &[][..],
            &["ls", "-l"],
            &["sh", "-c", "ls | wc"],
            &["grep", "a|b", "file"],
            &["php", "-r", "echo 1 > 0;"],
        ] {
            assert!(shell_hint(argv).is_none(), "{argv:?}");
        }
    }
}

//! A hint for a command line that was written for a shell. Programs of the guest are started
//! without one, so `ls | wc` is either a program of that name or `ls` with the arguments `|`, `wc`.

/// Arguments that only a shell gives a meaning.
const OPERATORS: &[&str] = &["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];

/// What to write instead, when the arguments look like a line for a shell.
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
    use super::shell_hint;

    #[test]
    fn lines_for_a_shell_are_recognised() {
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
    fn ordinary_arguments_get_no_hint() {
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

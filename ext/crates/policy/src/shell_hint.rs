//! Hint for command lines that were written for a shell. Programs in the guest start without a
//! shell, so the single argument `ls | wc` names a program `ls | wc`, and the three arguments `ls`,
//! `|` and `wc` start `ls` with the arguments `|` and `wc`.

/// Arguments that have a meaning only in a shell.
const OPERATORS: &[&str] = &["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];

/// Returns a hint to call `sh -c`, if the arguments look like shell syntax.
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

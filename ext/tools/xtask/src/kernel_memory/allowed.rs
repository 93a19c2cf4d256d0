//! Reads the seccomp lists in the source of the launcher.

use crate::findings::TaskError;
use crate::tree;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const DIRECTORY: &str = "ext/isolation/launcher/src";
/// Constants with what is allowed. Other constants of these files are parts of them, or lists of
/// what is refused.
const LISTS: &[&str] = &["COMMON", "LEGACY", "CHECKED", "ADDED", "SETTINGS"];
/// System calls that the libc crate does not name.
const NUMBERS: &[(&str, &str)] = &[("452", "fchmodat2")];
/// Prefixes of options, and the call that has them.
const OPTIONS: &[(&str, &str)] = &[
    ("PR_", "prctl"),
    ("TCP_", "setsockopt"),
    ("IP_", "setsockopt"),
    ("IPV6_", "setsockopt"),
];
const CALL: &str = "SYS_";

/// What the seccomp lists allow.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// Names of the system calls.
    pub(super) calls: BTreeSet<String>,
    /// Options by call, of those calls that may have only these.
    pub(super) options: BTreeMap<&'static str, BTreeSet<String>>,
    /// Values that an argument must not have.
    pub(super) refused: BTreeSet<String>,
}

impl Allowed {
    /// Reads all lists of the launcher.
    pub(super) fn read(root: &Path) -> Result<Self, TaskError> {
        let mut allowed = Self::default();
        for path in tree::files(&root.join(DIRECTORY))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with("syscalls") || !tree::has_extension(&path, "rs") {
                continue;
            }
            let shown = tree::shown(root, &path);
            allowed
                .add(&tree::read(&path)?)
                .map_err(|what| TaskError::Findings(vec![format!("{shown}: {what}")]))?;
        }
        Ok(allowed)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        let tokens: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| error.to_string())?;
        let mut list = false;
        let mut after_const = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(word) if after_const => {
                    list = LISTS.iter().any(|name| word == name);
                    after_const = false;
                }
                TokenTree::Ident(word) => after_const = word == "const",
                TokenTree::Punct(mark) if mark.as_char() == ';' => list = false,
                TokenTree::Group(group) if list => self.walk(group.stream(), false)?,
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        Ok(())
    }

    /// Adds the names in an expression; `negated`: they are arguments of `IsNot`.
    fn walk(&mut self, tokens: TokenStream, negated: bool) -> Result<(), String> {
        let mut next_is_negated = false;
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    let word = word.to_string();
                    next_is_negated = word == "IsNot";
                    self.word(&word, negated);
                }
                TokenTree::Group(group) => {
                    self.walk(group.stream(), negated || next_is_negated)?;
                    next_is_negated = false;
                }
                TokenTree::Literal(number) => self.number(&number.to_string())?,
                TokenTree::Punct(_) => {}
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str, negated: bool) {
        if negated {
            self.refused.insert(word.to_owned());
        } else if let Some(name) = word.strip_prefix(CALL) {
            self.calls.insert(name.to_owned());
        } else if let Some((_, call)) = OPTIONS.iter().find(|(prefix, _)| word.starts_with(prefix))
        {
            self.options
                .entry(call)
                .or_default()
                .insert(word.to_owned());
        }
    }

    /// Adds the call with this number. Text (of `cfg`), values in hexadecimal and numbers below 256
    /// (indexes of arguments, and values) are no calls.
    fn number(&mut self, number: &str) -> Result<(), String> {
        let other = number.starts_with(['"', '\'']) || number.starts_with("0x");
        match NUMBERS.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => self.calls.insert((*name).to_owned()),
            None if other || number.parse::<u8>().is_ok() => false,
            None => {
                return Err(format!(
                    "{number} is not in NUMBERS of kernel_memory/allowed.rs"
                ));
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        use libc::{SYS_bpf, SYS_read};
        pub(crate) const COMMON: &[i64] = &[SYS_read, 452];
        const F_SETDELEG: u64 = 1040;
        pub(crate) const CHECKED: &[(i64, &[&[Argument]])] = &[
            #[cfg(target_arch = \"x86_64\")]
            (libc::SYS_fcntl, &[&[Argument::IsNot(1, libc::F_NOTIFY as u64), Argument::Is(0, 0xffff)]]),
            (SYS_prctl, &[&[option(libc::PR_SET_NAME)]]),
        ];
        const SETTINGS: &[&[Argument]] = &[&setting(libc::IPPROTO_TCP, libc::TCP_CORK)];
        pub(crate) const ABSENT: &[i64] = &[SYS_seccomp];";

    #[test]
    fn calls_options_and_refused_values_are_read_from_the_lists_only() {
        let mut allowed = Allowed::default();
        allowed.add(SOURCE).unwrap();
        let calls: Vec<_> = allowed.calls.iter().map(String::as_str).collect();
        assert_eq!(calls, ["fchmodat2", "fcntl", "prctl", "read"]);
        assert!(allowed.options["prctl"].contains("PR_SET_NAME"));
        assert!(allowed.options["setsockopt"].contains("TCP_CORK"));
        assert!(allowed.refused.contains("F_NOTIFY"));
    }

    #[test]
    fn unknown_number_of_a_system_call_is_refused() {
        let source = SOURCE.replace("452", "470");
        assert!(Allowed::default().add(&source).is_err());
    }
}

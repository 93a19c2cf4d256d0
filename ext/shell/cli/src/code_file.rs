//! Argument `code-file=` of a command: a file of this host is copied into the guest.

use super::request::absolute;
use wp_codebox_contracts::{CommandCall, ErrorBody, MountRequest, StagedFile};
use wp_codebox_policy::{GUEST_STAGED_ROOT, descriptor};

/// Name of the argument.
const ARGUMENT: &str = "code-file";

/// Replaces the host path in each `code-file` by the guest path of a copy, and returns the files to
/// copy. Relative paths are resolved from the working directory. A path below `/workspace`,
/// `/wordpress`, the directory of staged files or the target of a mount is a guest path already.
pub(crate) fn stage(
    calls: &mut [CommandCall],
    mounts: &[MountRequest],
) -> Result<Vec<StagedFile>, ErrorBody> {
    let mut staged = Vec::new();
    for (index, call) in calls.iter_mut().enumerate() {
        let takes_one = descriptor(&call.command)
            .is_some_and(|found| found.accepted_args.iter().any(|a| a.name == ARGUMENT));
        if !takes_one {
            continue;
        }
        for arg in &mut call.args {
            let Some((ARGUMENT, host)) = arg.split_once('=') else {
                continue;
            };
            if host.trim().is_empty() || is_guest_path(host, mounts) {
                continue;
            }
            let target = format!("{GUEST_STAGED_ROOT}/code/{index}/{}", plain_name(host));
            staged.push(StagedFile {
                source: absolute(host)?,
                target: target.clone(),
            });
            *arg = format!("{ARGUMENT}={target}");
        }
    }
    Ok(staged)
}

fn is_guest_path(path: &str, mounts: &[MountRequest]) -> bool {
    let targets = mounts.iter().map(|mount| mount.target.as_str());
    ["/workspace", "/wordpress", GUEST_STAGED_ROOT]
        .into_iter()
        .chain(targets)
        .any(|root| {
            let below = path.strip_prefix(root.trim_end_matches('/'));
            below.is_some_and(|rest| rest.starts_with('/'))
        })
}

/// Returns the name of the file with special characters replaced. The rest of the name is kept,
/// because PHPUnit derives the class of a test from the name of its file.
fn plain_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '_',
        })
        .take(80)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{GitChoice, MountAccess};

    fn staged(command: &str, arg: &str) -> (String, Vec<StagedFile>) {
        let mut calls = [CommandCall {
            command: command.to_owned(),
            args: vec!["bootstrap=none".to_owned(), arg.to_owned()],
        }];
        let mount = MountRequest {
            source: "/host/lib".to_owned(),
            target: "/srv/lib".to_owned(),
            mode: MountAccess::Readonly,
            exclude: Vec::new(),
            git: GitChoice::default(),
            metadata: None,
        };
        let files = stage(&mut calls, &[mount]).unwrap();
        (calls[0].args[1].clone(), files)
    }

    #[test]
    fn code_file_of_the_host_is_staged_and_replaced_by_its_guest_path() {
        let cwd = std::env::current_dir().unwrap();
        for (path, source) in [
            ("a b.php", cwd.join("a b.php")),
            ("./sub/a=b.php", cwd.join("sub/a=b.php")),
            ("/tmp/x.php", "/tmp/x.php".into()),
        ] {
            let (arg, files) = staged("wordpress.run-php", &format!("code-file={path}"));
            let name = plain_name(path);
            assert_eq!(arg, format!("code-file=/run/codebox/staged/code/0/{name}"));
            assert_eq!(files.len(), 1, "{path}");
            assert_eq!(files[0].source, source.to_str().unwrap());
            assert_eq!(arg, format!("code-file={}", files[0].target));
        }
    }

    #[test]
    fn code_file_with_a_guest_path_and_arguments_of_other_commands_stay_unchanged() {
        for (command, arg) in [
            ("wordpress.run-php", "code-file=/workspace/a/b.php"),
            ("wordpress.run-php", "code-file=/wordpress/index.php"),
            ("wordpress.run-php", "code-file=/srv/lib/b.php"),
            ("wordpress.run-php", "code-file="),
            ("wordpress.run-php", "code=code-file=x.php"),
            ("wordpress.wp-cli", "code-file=x.php"),
        ] {
            assert_eq!(staged(command, arg), (arg.to_owned(), Vec::new()), "{arg}");
        }
    }
}

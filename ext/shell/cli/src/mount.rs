//! Mounts of a guest: arguments `--mount`, and the project around the current directory.

use super::activation::Activate;
use super::guest_args::{GitMode, GuestArgs};
use super::output::Output;
use super::project::{self, Project};
use super::request::{absolute, text};
use std::path::Path;
use wp_codebox_contracts::{Activation, ErrorBody, ErrorCode, MountAccess, MountRequest};

/// Value of `--check` that is replaced by the checks that the project's files suggest.
pub(crate) const AUTO_CHECK: &str = "auto";

/// A mount, and the project in its directory if this program chose the guest path.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub request: MountRequest,
    pub project: Option<Project>,
}

/// Returns the mounts of the arguments.
pub(crate) fn mounts(args: &GuestArgs) -> Result<Vec<Mounted>, ErrorBody> {
    let mounts = args.mounts.iter();
    mounts.map(|text| mount(text, args.git)).collect()
}

/// Returns the mount of a project, at the guest path that follows from its kind and name.
pub(crate) fn of_project(project: Project, git: GitMode) -> Result<Mounted, ErrorBody> {
    Ok(Mounted {
        request: MountRequest {
            source: text(&project.root)?,
            target: project.target.clone(),
            mode: MountAccess::Readwrite,
            exclude: Vec::new(),
            git: git.into(),
            metadata: None,
        },
        project: Some(project),
    })
}

/// Returns the mounts of the arguments or, without any, the project around the current directory.
pub(crate) fn mounts_or_project(args: &GuestArgs) -> Result<Vec<Mounted>, ErrorBody> {
    if !args.mounts.is_empty() {
        return mounts(args);
    }
    Ok(vec![of_project(project::here()?, args.git)?])
}

/// Returns the mounts of the arguments or, without any, the project around the current directory if
/// it is a plugin, theme or Composer package. Any other directory is mounted only with `--mount`.
pub(crate) fn mounts_or_recognised(args: &GuestArgs) -> Result<Vec<Mounted>, ErrorBody> {
    if !args.mounts.is_empty() {
        return mounts(args);
    }
    match project::here() {
        Ok(project) if project.is_recognised() => Ok(vec![of_project(project, args.git)?]),
        Ok(_) | Err(_) => Ok(Vec::new()),
    }
}

/// Prints which directory is mounted where, for mounts whose guest path this program chose.
pub(crate) fn announce(output: Output, mounts: &[Mounted]) {
    if output.is_json() {
        return;
    }
    for project in mounts.iter().filter_map(|mount| mount.project.as_ref()) {
        output.note(&project.why);
    }
}

/// Returns the mounted plugins and themes that the guest activates. Child themes come last:
/// WordPress has one active theme, and a user who mounts parent and child wants the child.
pub(crate) fn activations(mounts: &[Mounted], when: Activate) -> Vec<Activation> {
    let required = match when {
        Activate::Never => return Vec::new(),
        Activate::Try => false,
        Activate::Required => true,
    };
    let projects = mounts.iter().filter_map(|mount| mount.project.as_ref());
    let (children, others): (Vec<_>, Vec<_>) =
        projects.partition(|project| project.parent_theme.is_some());
    let ordered = others.into_iter().chain(children);
    ordered
        .filter_map(|project| project.activation())
        .map(|(kind, name)| Activation {
            kind,
            name,
            required,
        })
        .collect()
}

/// Replaces `auto` in the checks by the checks that the mounted projects' files suggest, and prints
/// the suggested checks.
pub(crate) fn checks(output: Output, given: &[String], mounts: &[Mounted]) -> Vec<String> {
    let mut checks = Vec::new();
    for check in given {
        if check != AUTO_CHECK {
            checks.push(check.clone());
            continue;
        }
        let projects = mounts.iter().filter_map(|mount| mount.project.as_ref());
        let proposed: Vec<_> = projects.flat_map(project::proposed_checks).collect();
        if proposed.is_empty() {
            output.note(project::NO_CHECKS);
        }
        for check in proposed {
            if !output.is_json() {
                output.note(&format!("check: {} ({})", check.command, check.why));
            }
            checks.push(check.command);
        }
    }
    checks
}

/// Parses `HOST[:GUEST][:MODE]`. The host part may contain colons; the guest path starts at the last
/// `:/`. Without a guest path, the content of the host directory decides where it is mounted.
pub(crate) fn mount(given: &str, git: GitMode) -> Result<Mounted, ErrorBody> {
    let invalid = || {
        ErrorBody::new(
            ErrorCode::MountInvalid,
            format!(
                "--mount {given:?} must be HOST, HOST:GUEST or HOST:GUEST:MODE, where GUEST is an absolute path and MODE readonly or readwrite"
            ),
        )
    };
    let (rest, mode) = match given.rsplit_once(':') {
        Some((rest, "readonly" | "ro")) => (rest, MountAccess::Readonly),
        Some((rest, "readwrite" | "rw")) => (rest, MountAccess::Readwrite),
        Some(_) | None => (given, MountAccess::Readwrite),
    };
    let (host, target) = match rest.rfind(":/") {
        Some(at) if rest[at + 1..].contains(':') => return Err(invalid()),
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        // The whole text is not an existing path, so the text after the colon is probably a guest
        // path without its slash, or a wrong mode.
        None if rest.contains(':') && !Path::new(rest).exists() => return Err(invalid()),
        None => (rest, None),
    };
    if host.is_empty() {
        return Err(invalid());
    }
    let Some(target) = target else {
        let project = project::of(Path::new(host))?;
        let mut mounted = of_project(project, git)?;
        mounted.request.mode = mode;
        return Ok(mounted);
    };
    let request = MountRequest {
        source: absolute(host)?,
        target: target.to_owned(),
        mode,
        exclude: Vec::new(),
        git: git.into(),
        metadata: None,
    };
    Ok(Mounted {
        request,
        project: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_theme_is_activated_after_its_parent_in_every_order_of_mounts() {
        let temp = tempfile::tempdir().unwrap();
        let theme = |slug: &str, header: &str| {
            let directory = temp.path().join(slug);
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("style.css"), header).unwrap();
            directory.to_str().unwrap().to_owned()
        };
        let sky = theme("sky", "/* Theme Name: Sky */");
        let night = theme("night", "/*\nTheme Name: Night\nTemplate: sky\n*/");
        for order in [[&sky, &night], [&night, &sky]] {
            let mounts = order.map(|given| mount(given, GitMode::None).unwrap());
            let activated = activations(&mounts, Activate::Try);
            let names: Vec<&str> = activated.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(names, ["sky", "night"]);
        }
    }

    #[test]
    fn mount_argument_is_split_at_the_last_colon_before_a_slash() {
        let row = mount("/srv/a:b:/workspace/x:ro", GitMode::Auto)
            .unwrap()
            .request;
        assert_eq!(
            (row.source.as_str(), row.target.as_str(), row.mode),
            ("/srv/a:b", "/workspace/x", MountAccess::Readonly)
        );
        assert_eq!(
            mount("/a:/workspace/x", GitMode::Auto)
                .unwrap()
                .request
                .mode,
            MountAccess::Readwrite
        );
        for bad in ["", ":/workspace/x", "/a:workspace", "/a:/w:rwx"] {
            assert_eq!(
                mount(bad, GitMode::Auto).unwrap_err().code,
                ErrorCode::MountInvalid,
                "{bad}"
            );
        }
    }
}

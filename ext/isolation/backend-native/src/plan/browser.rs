//! Launch plan of a guest that runs a browser: system directories, fonts and scratch space, no
//! files of a project.
//!
//! The guest has no WordPress, no mounts, no PHP and no programs of the product. The guest reaches
//! the network only through a pair of sockets on which the runner accepts connections. The
//! browser's own sandbox needs user namespaces, which no guest may create. The guest replaces that
//! sandbox, with one list of allowed system calls for all browser processes.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::settings::{EGRESS_PORT, EGRESS_SOCKET, HOME};
use super::{GUEST_ID, hide};
use crate::host::{HiddenPath, HostLayout};
use wp_codebox_contracts::{
    CallSet, EgressSockets, IsolationLevel, LaunchPlan, LaunchPurpose, Limits, PLAN_VERSION,
    PlanIdentity,
};

/// fontconfig configuration: font directories and generic families, without the host's settings.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
<dir>/usr/share/fonts</dir>
<cachedir>/tmp/fontconfig</cachedir>
<include ignore_missing="yes">/usr/share/fontconfig/conf.avail/45-latin.conf</include>
<include ignore_missing="yes">/usr/share/fontconfig/conf.avail/60-latin.conf</include>
</fontconfig>
"#;

/// Input of [`browser_plan`].
#[derive(Debug, Clone, Copy)]
pub struct BrowserPlan<'a> {
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// Host paths that the guest must not see, in addition to those of the host layout.
    pub hidden: &'a [HiddenPath],
    /// Directory of a browser that is installed outside the system directories.
    pub directory: Option<&'a str>,
    /// Resource limits of this guest.
    pub limits: Limits,
}

/// Builds the launch plan of a browser's guest.
pub fn browser_plan(spec: &BrowserPlan<'_>) -> Result<LaunchPlan, PlanError> {
    let mut builder = Builder::default();
    builder.system(spec.host)?;
    if let Some(directory) = spec.directory {
        builder.bind(directory, directory)?;
    }
    hide(&mut builder, spec.host.hidden.iter().chain(spec.hidden))?;
    for file in &spec.host.etc {
        builder.bind(file, file)?;
    }
    builder.file("/etc/fonts/fonts.conf", FONTS)?;
    builder.file(
        "/etc/passwd",
        format!("browser:x:{GUEST_ID}:{GUEST_ID}:browser:{HOME}:/bin/false\n"),
    )?;
    builder.file("/etc/group", format!("browser:x:{GUEST_ID}:\n"))?;
    builder.file("/etc/hosts", "127.0.0.1 localhost\n")?;
    builder.file(
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    )?;
    builder.file("/etc/resolv.conf", "")?;
    builder.scratch("/tmp", 0o1777)?;
    builder.directory("/var")?;
    builder.link("/var/tmp", "/tmp")?;
    builder.scratch(HOME, 0o755)?;
    builder.scratch("/dev/shm", 0o1777)?;
    Ok(LaunchPlan {
        version: PLAN_VERSION,
        purpose: LaunchPurpose::Serve,
        level: IsolationLevel::Full,
        guest_id: GUEST_ID,
        identity: PlanIdentity::Shared,
        hostname: "browser".to_owned(),
        mounts: builder.mounts,
        writable: builder.writable,
        calls: CallSet::Browser,
        limits: spec.limits,
        scratch: None,
        egress: Some(EgressSockets {
            socket: path(EGRESS_SOCKET)?,
            port: EGRESS_PORT,
        }),
        mail: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{SystemEntry, SystemEntryKind};
    use wp_codebox_contracts::{BindSource, GuestPath, LaunchMount};

    #[test]
    fn launch_plan_of_a_browser_binds_only_system_directories_and_has_three_writable_directories() {
        let host = HostLayout {
            system: vec![SystemEntry {
                path: "/usr".to_owned(),
                kind: SystemEntryKind::Directory,
            }],
            etc: vec!["/etc/alternatives".to_owned()],
            hidden: vec![HiddenPath::Directory("/usr/share/site".to_owned())],
        };
        let plan = browser_plan(&BrowserPlan {
            host: &host,
            hidden: &[HiddenPath::File("/usr/share/wp-config.php".to_owned())],
            directory: None,
            limits: Limits::default(),
        })
        .unwrap();
        let binds: Vec<(String, bool)> = plan
            .mounts
            .iter()
            .filter_map(|mount| match mount {
                LaunchMount::Bind {
                    source: BindSource::Host(source),
                    writable,
                    ..
                } => Some((source.path.clone(), *writable)),
                _ => None,
            })
            .collect();
        assert_eq!(
            binds,
            [
                ("/usr".to_owned(), false),
                ("/etc/alternatives".to_owned(), false)
            ]
        );
        let covered = plan.mounts.iter().filter(|mount| {
            matches!(
                mount,
                LaunchMount::Bind {
                    source: BindSource::Guest { .. },
                    ..
                }
            )
        });
        assert_eq!(covered.count(), 2);
        let writable: Vec<&str> = plan.writable.iter().map(GuestPath::as_str).collect();
        assert_eq!(writable, ["/tmp", HOME, "/dev/shm"]);
        assert_eq!(plan.calls, CallSet::Browser);
        assert!(plan.egress.is_some());
    }
}

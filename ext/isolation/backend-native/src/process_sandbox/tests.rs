//! Tests of the command line and the audit record that wrappers compute from a launch plan. No
//! process is started.

use super::*;
use crate::host::HostLayout;
use crate::probe_plan;
use std::path::Path;
use wp_codebox_contracts::{
    BindSource, CodedError, ErrorCode, GuestPath, HostSource, LaunchMount, LaunchPlan,
    OuterSandbox, OuterSandboxKind, OuterSandboxNeed,
};
use wp_codebox_process_wrapper::kind_name;

const SECRET: &str = "/srv/customers/acme/plugins/shop";
const STATE: &str = "/var/lib/wp-codebox/templates/k";

fn guest(path: &str) -> GuestPath {
    GuestPath::new(path).unwrap()
}

fn bind(host: &str, target: &str, writable: bool) -> LaunchMount {
    LaunchMount::Bind {
        source: BindSource::Host(HostSource::of(host)),
        target: guest(target),
        writable,
    }
}

fn plan() -> LaunchPlan {
    let mut plan = probe_plan(&HostLayout::default());
    plan.mounts.extend([
        bind("/usr", "/usr", false),
        bind("/usr/share/x", "/opt/codebox", false),
        LaunchMount::Symlink {
            target: guest("/lib64"),
            to: "usr/lib64".to_owned(),
        },
        LaunchMount::Symlink {
            target: guest("/etc/mtab"),
            to: "/proc/mounts".to_owned(),
        },
        bind(&format!("{STATE}/core"), "/wordpress", false),
        bind(
            &format!("{STATE}/core/wp-content"),
            "/wordpress/wp-content",
            true,
        ),
        LaunchMount::Overlay {
            lowers: vec![
                HostSource::of("/var/lib/wp-codebox/scratch/change-0"),
                HostSource::of(SECRET),
            ],
            target: guest("/workspace/shop"),
            capture: Some(0),
        },
    ]);
    plan
}

fn command(plan: &LaunchPlan) -> LauncherCommand<'_> {
    LauncherCommand {
        program: "/opt/x/libexec/wp-codebox-launch".to_owned(),
        args: Vec::new(),
        plan,
    }
}

fn all() -> Vec<Box<dyn ProcessSandbox>> {
    vec![
        Box::new(NoSandbox),
        Box::new(Unwrapped {
            reason: "x".to_owned(),
        }),
        Box::new(Bubblewrap {
            program: "/usr/bin/bwrap".to_owned(),
        }),
        Box::new(Gvisor {
            program: "/usr/bin/runsc".to_owned(),
            directory: "/var/lib/wp-codebox/scratch/gvisor".to_owned(),
        }),
    ]
}

/// Covers a launcher command without arguments, and one with an argument that is too long for the
/// audit record.
#[test]
fn launcher_command_without_a_wrapper_is_unchanged() {
    let plan = plan();
    for sandbox in [
        &NoSandbox as &dyn ProcessSandbox,
        &Unwrapped {
            reason: "x".to_owned(),
        },
    ] {
        let mut given = command(&plan);
        let wrapped = sandbox.wrap(&given.host_command());
        assert_eq!(wrapped.program, "/opt/x/libexec/wp-codebox-launch");
        assert!(wrapped.args.is_empty());
        given.args = vec!["é".repeat(200), "b".to_owned()];
        let wrapped = sandbox.wrap(&given.host_command());
        assert_eq!(
            (&wrapped.program, &wrapped.args),
            (&given.program, &given.args)
        );
        assert_eq!(wrapped.audit.kind, "none");
        assert_eq!(wrapped.audit.wrapped_cmd, "wp-codebox-launch");
        assert_eq!(wrapped.audit.wrapped_args[0].len(), 256);
    }
}

#[test]
fn wrapped_launcher_command_is_deterministic_and_ends_with_the_launcher() {
    let plan = plan();
    for sandbox in all() {
        let wrapped = sandbox.wrap(&command(&plan).host_command());
        assert_eq!(wrapped, sandbox.wrap(&command(&plan).host_command()));
        assert_eq!(wrapped.audit.wrapped_cmd, "wp-codebox-launch");
        if sandbox.kind() != OuterSandboxKind::None {
            assert!(wrapped.args.last().unwrap().ends_with("wp-codebox-launch"));
            assert_ne!(wrapped.program, command(&plan).program);
        }
    }
}

#[test]
fn bubblewrap_command_binds_only_host_paths_of_the_launch_plan() {
    let plan = plan();
    let sandbox = Bubblewrap {
        program: "/usr/bin/bwrap".to_owned(),
    };
    let args = sandbox.wrap(&command(&plan).host_command()).args.join(" ");
    assert_eq!(
        args,
        "--unshare-user --unshare-pid --as-pid-1 --unshare-ipc --unshare-net --unshare-uts \
         --die-with-parent --new-session --proc /proc --dev /dev --dir /tmp \
         --symlink usr/lib64 /lib64 \
         --ro-bind-try /srv/customers/acme/plugins/shop /srv/customers/acme/plugins/shop \
         --ro-bind-try /usr /usr \
         --ro-bind-try /var/lib/wp-codebox/scratch/change-0 /var/lib/wp-codebox/scratch/change-0 \
         --ro-bind-try /var/lib/wp-codebox/templates/k/core /var/lib/wp-codebox/templates/k/core \
         --bind-try /var/lib/wp-codebox/templates/k/core/wp-content /var/lib/wp-codebox/templates/k/core/wp-content \
         --ro-bind /opt/x/libexec/wp-codebox-launch /run/wp-codebox-launch \
         --chdir / -- /run/wp-codebox-launch"
    );
}

#[test]
fn process_wrapper_audit_record_contains_no_host_paths() {
    let plan = plan();
    for sandbox in all() {
        let audit = sandbox.wrap(&command(&plan).host_command()).audit;
        let text = serde_json::to_string(&audit).unwrap();
        for host in ["/srv", "/var/lib", "/opt/x", "libexec", "/usr/bin"] {
            assert!(!text.contains(host), "{host} in {text}");
        }
        if sandbox.kind() == OuterSandboxKind::Bubblewrap {
            assert_eq!(audit.wrapper_name, "bwrap");
            // Positive control: the record contains the guest paths of the same directories.
            for path in ["/workspace/shop", "/wordpress", "/wordpress/wp-content"] {
                assert!(audit.mounts.iter().any(|mount| mount == path), "{text}");
                assert!(audit.wrapped_args.iter().any(|arg| arg == path), "{text}");
            }
        }
    }
}

#[test]
fn long_process_wrapper_audit_record_is_marked_as_truncated() {
    let mut plan = plan();
    for number in 0..200 {
        plan.mounts.push(bind(
            &format!("/data/{number}"),
            &format!("/workspace/{number}"),
            false,
        ));
    }
    let wrapped = Bubblewrap {
        program: "/usr/bin/bwrap".to_owned(),
    }
    .wrap(&command(&plan).host_command());
    assert!(wrapped.args.len() > 600);
    assert_eq!(wrapped.audit.wrapped_args.len(), 257);
    assert!(wrapped.audit.wrapped_args[256].ends_with(" more]"));
}

fn wanted(kind: OuterSandboxKind, program: &str, need: OuterSandboxNeed) -> OuterSandbox {
    OuterSandbox {
        kind,
        program: Some(program.to_owned()),
        need,
    }
}

#[test]
fn run_is_refused_if_the_required_process_wrapper_is_missing() {
    use OuterSandboxKind::{Bubblewrap, Gvisor, None};
    use OuterSandboxNeed::{Preferred, Required};
    let directory = Path::new("/tmp");
    for kind in [Bubblewrap, Gvisor] {
        let refused = choose(&wanted(kind, "/nonexistent/w", Required), directory).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SandboxWrapperMissing);
        assert_eq!(refused.code().exit_status(), 125);
        // A file without execute permission does not count as a program.
        let refused = choose(&wanted(kind, "/etc/passwd", Required), directory).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SandboxWrapperMissing);
        // Positive control: any executable is accepted.
        let chosen = choose(&wanted(kind, "/bin/sh", Required), directory).unwrap();
        assert_eq!((chosen.sandbox.kind(), chosen.notices.len()), (kind, 0));
        let chosen = choose(&wanted(kind, "/nonexistent/w", Preferred), directory).unwrap();
        assert_eq!((chosen.sandbox.kind(), chosen.notices.len()), (None, 1));
        let plan = plan();
        let reason = chosen
            .sandbox
            .wrap(&command(&plan).host_command())
            .audit
            .reason
            .unwrap();
        assert!(reason.contains(kind_name(kind)), "{reason}");
    }
}

#[test]
fn process_wrapper_setting_needs_an_absolute_path_and_a_kind() {
    use OuterSandboxKind::{Bubblewrap, None};
    let directory = Path::new("/tmp");
    for need in [OuterSandboxNeed::Required, OuterSandboxNeed::Preferred] {
        for (kind, program) in [(Bubblewrap, "bwrap"), (None, "/usr/bin/bwrap")] {
            let refused = choose(&wanted(kind, program, need), directory).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InputInvalid, "{program}");
        }
    }
    let chosen = choose(&OuterSandbox::default(), directory).unwrap();
    assert_eq!(chosen.sandbox.kind(), None);
}

//! Tests of the launch plans that `build_plan` returns: comparison with recorded plans, and one
//! test per rule.

use super::*;
use crate::host::{SystemEntry, SystemEntryKind};
use crate::php::{PhpExtension, VisibleSettings};
use wp_codebox_contracts::{CodedError, ErrorCode};

fn host() -> HostLayout {
    let link = |path: &str, to: &str| SystemEntry {
        path: path.to_owned(),
        kind: SystemEntryKind::Link(to.to_owned()),
    };
    HostLayout {
        system: vec![
            SystemEntry {
                path: "/usr".to_owned(),
                kind: SystemEntryKind::Directory,
            },
            link("/bin", "usr/bin"),
            link("/lib64", "usr/lib64"),
        ],
        etc: vec!["/etc/alternatives".to_owned()],
        hidden: vec![
            HiddenPath::File("/usr/share/wp-config.php".to_owned()),
            HiddenPath::Directory("/srv/elsewhere".to_owned()),
        ],
    }
}

fn php(binary: &str) -> PhpLayout {
    PhpLayout {
        binary: binary.to_owned(),
        version: "8.2.1".to_owned(),
        ini_directory: "/etc/php/8.2/cli".to_owned(),
        visible: None,
        extension_dir: "/usr/lib/php/20220829".to_owned(),
        extensions: vec![
            PhpExtension {
                file: "pdo.so".to_owned(),
                zend: false,
            },
            PhpExtension {
                file: "opcache.so".to_owned(),
                zend: true,
            },
        ],
        loaded: Vec::new(),
    }
}

fn template() -> Template {
    Template {
        key: "k".repeat(64),
        core: "/state/t/core".to_owned(),
        content: "/state/t/content".to_owned(),
        opcache: "/state/t/opcache".to_owned(),
        wp_cli: "/state/t/wp-cli".to_owned(),
        database: Database::Sqlite,
        wordpress_version: "7.1.1".to_owned(),
        hidden: vec![HiddenPath::Directory("/usr/share/wordpress".to_owned())],
    }
}

fn mount(index: u32, target: &str) -> PlannedMount {
    PlannedMount {
        index,
        lowers: vec![HostSource::of(format!("/host/{index}"))],
        target: GuestPath::new(target).unwrap(),
        access: MountAccess::Readwrite,
        view: MountView::Overlay,
        git: None,
    }
}

fn plan_of(
    mounts: &[PlannedMount],
    staged: &[StagedFile],
    template_access: TemplateAccess,
) -> Result<LaunchPlan, PlanError> {
    plan_with(mounts, staged, template_access, &GuestEgress::Denied)
}

fn plan_with(
    mounts: &[PlannedMount],
    staged: &[StagedFile],
    template_access: TemplateAccess,
    egress: &GuestEgress,
) -> Result<LaunchPlan, PlanError> {
    let none = PlannedComponents::default();
    plan_for(mounts, &none, staged, template_access, egress)
}

fn plan_for(
    mounts: &[PlannedMount],
    components: &PlannedComponents,
    staged: &[StagedFile],
    template_access: TemplateAccess,
    egress: &GuestEgress,
) -> Result<LaunchPlan, PlanError> {
    build_plan(&GuestSpec {
        host: &host(),
        php: &php("/usr/bin/php8.2"),
        share_dir: "/share",
        template: &template(),
        template_access,
        mounts,
        content: &[],
        components,
        programs: &[],
        task_json: "{}",
        staged,
        limits: Limits::default(),
        egress,
    })
}

fn plan_with_programs(source: &str, target: &str) -> Result<LaunchPlan, PlanError> {
    let programs = [ProgramDirectory {
        source: HostSource::of(source),
        target: GuestPath::new(target).unwrap(),
    }];
    build_plan(&GuestSpec {
        host: &host(),
        php: &php("/usr/bin/php8.2"),
        share_dir: "/share",
        template: &template(),
        template_access: TemplateAccess::Run,
        mounts: &[],
        content: &[],
        components: &PlannedComponents::default(),
        programs: &programs,
        task_json: "{}",
        staged: &[],
        limits: Limits::default(),
        egress: &GuestEgress::Tunnel,
    })
}

#[test]
fn agent_programs_are_mounted_read_only_below_opt_agents() {
    let plan = plan_with_programs("/srv/agents/x", "/opt/agents/x").unwrap();
    let bound = "bind ro host:/srv/agents/x /opt/agents/x".to_owned();
    assert!(lines(&plan).contains(&bound), "{:?}", lines(&plan));
    assert!(
        !plan
            .writable
            .iter()
            .any(|p| p.as_str().starts_with("/opt/agents"))
    );
    for target in [
        "/opt/agents",
        "/opt/agents/x/y",
        "/opt/codebox/x",
        "/etc",
        "/opt/agentsx",
    ] {
        let refused = plan_with_programs("/srv/agents/x", target);
        assert!(
            matches!(refused, Err(PlanError::Programs { .. })),
            "{target}"
        );
    }
    // Paths below /usr that are hidden stay hidden in a program directory that lies below /usr.
    let plan = plan_with_programs("/usr/share", "/opt/agents/x").unwrap();
    assert!(
        lines(&plan)
            .iter()
            .any(|line| line.ends_with("/usr/share/wordpress"))
    );
}

fn plan(mounts: &[PlannedMount]) -> LaunchPlan {
    plan_of(mounts, &[], TemplateAccess::Run).unwrap()
}

/// Returns one line per step of the plan, without file contents.
fn lines(plan: &LaunchPlan) -> Vec<String> {
    shown(&plan.mounts)
}

fn shown(mounts: &[LaunchMount]) -> Vec<String> {
    mounts
        .iter()
        .map(|mount| match mount {
            LaunchMount::Directory { target } => format!("dir {target}"),
            LaunchMount::File(entry) => format!("file {} {:o}", entry.target, entry.mode),
            LaunchMount::Symlink { target, to } => format!("link {target} -> {to}"),
            LaunchMount::Bind {
                source,
                target,
                writable,
            } => {
                let access = if *writable { "rw" } else { "ro" };
                match source {
                    BindSource::Host(host) => format!("bind {access} host:{} {target}", host.path),
                    BindSource::Guest { path } => format!("bind {access} guest:{path} {target}"),
                }
            }
            LaunchMount::Scratch { target, mode } => format!("scratch {target} {mode:o}"),
            LaunchMount::Overlay {
                lowers,
                target,
                capture,
            } => {
                let lowers: Vec<&str> = lowers.iter().map(|l| l.path.as_str()).collect();
                format!("overlay {} {target} {capture:?}", lowers.join(":"))
            }
            LaunchMount::Merged { lowers, target } => format!(
                "merged {target} <- {}",
                lowers
                    .iter()
                    .map(|l| l.path.as_str())
                    .collect::<Vec<_>>()
                    .join(" + ")
            ),
            LaunchMount::Proc => "proc".to_owned(),
            LaunchMount::Dev => "dev".to_owned(),
        })
        .collect()
}

#[test]
fn launch_plan_of_a_run_with_one_plugin_matches_the_recorded_plan() {
    let plan = plan(&[mount(0, "/wordpress/wp-content/plugins/demo")]);
    let expected = [
        "proc",
        "dev",
        "bind ro host:/usr /usr",
        "link /bin -> usr/bin",
        "link /lib64 -> usr/lib64",
        "dir /run/codebox/empty",
        "file /run/codebox/blank 444",
        "bind ro guest:/run/codebox/blank /usr/share/wp-config.php",
        "bind ro guest:/run/codebox/empty /usr/share/wordpress",
        "bind ro host:/etc/alternatives /etc/alternatives",
        "file /etc/passwd 444",
        "file /etc/group 444",
        "file /etc/hosts 444",
        "file /etc/nsswitch.conf 444",
        "file /etc/resolv.conf 444",
        "bind ro host:/share /opt/codebox",
        "scratch /tmp 1777",
        "dir /var",
        "link /var/tmp -> /tmp",
        "scratch /home/agent 755",
        "scratch /dev/shm 1777",
        "dir /workspace",
        "dir /run/codebox/staged",
        "link /run/codebox/bin/php -> /usr/bin/php8.2",
        "file /etc/php/8.2/cli/php.ini 444",
        "bind ro host:/state/t/core /wordpress",
        "overlay /state/t/content /wordpress/wp-content Some(4294967295)",
        "overlay /state/t/opcache /var/cache/codebox/opcache None",
        "bind ro host:/state/t/wp-cli /run/codebox/wp-cli",
        "file /run/codebox/task.json 444",
        "overlay /host/0 /wordpress/wp-content/plugins/demo Some(0)",
        "link /workspace/demo -> /wordpress/wp-content/plugins/demo",
    ];
    assert_eq!(lines(&plan), expected);
    let writable: Vec<_> = plan.writable.iter().map(GuestPath::as_str).collect();
    let expected = [
        "/tmp",
        "/home/agent",
        "/dev/shm",
        "/wordpress/wp-content",
        "/var/cache/codebox/opcache",
        "/wordpress/wp-content/plugins/demo",
    ];
    assert_eq!(writable, expected);
    assert_eq!((plan.version, plan.guest_id), (PLAN_VERSION, 1000));
}

#[test]
fn equal_input_gives_byte_identical_launch_plans() {
    let mounts = [mount(0, "/workspace/a"), mount(1, "/workspace/b")];
    let text = |plan: &LaunchPlan| serde_json::to_string(plan).unwrap();
    assert_eq!(text(&plan(&mounts)), text(&plan(&mounts)));
}

#[test]
fn only_the_template_build_plan_bind_mounts_host_directories_writable() {
    let writes = |plan: &LaunchPlan| {
        plan.mounts
            .iter()
            .filter(|mount| {
                matches!(
                    mount,
                    LaunchMount::Bind {
                        source: BindSource::Host(_),
                        writable: true,
                        ..
                    }
                )
            })
            .count()
    };
    assert_eq!(writes(&plan(&[mount(0, "/workspace/a")])), 0);
    let build = plan_of(&[], &[], TemplateAccess::Build).unwrap();
    assert_eq!(writes(&build), 3);
    assert!(!lines(&build).iter().any(|line| line.starts_with("overlay")));
}

#[test]
fn readonly_mount_is_a_read_only_bind_mount_and_not_listed_as_writable() {
    let mut readonly = mount(0, "/wordpress/wp-content/themes/mine");
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    let plan = plan(&[readonly]);
    let lines = lines(&plan);
    for line in [
        "bind ro host:/host/0 /wordpress/wp-content/themes/mine",
        "link /workspace/mine -> /wordpress/wp-content/themes/mine",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}");
    }
    assert!(
        plan.writable
            .iter()
            .all(|path| !path.as_str().contains("mine"))
    );
}

#[test]
fn readonly_mount_with_an_overlay_view_is_refused() {
    let mut readonly = mount(0, "/workspace/mine");
    readonly.access = MountAccess::Readonly;
    let refused = plan_of(std::slice::from_ref(&readonly), &[], TemplateAccess::Run);
    assert!(matches!(refused, Err(PlanError::Mount { .. })));
    readonly.view = MountView::Bind;
    assert!(plan_of(&[readonly], &[], TemplateAccess::Run).is_ok());
}

#[test]
fn readonly_mount_with_two_lower_directories_is_merged_read_only() {
    let mut readonly = mount(0, "/workspace/mine");
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    readonly.lowers.insert(0, HostSource::of("/mask/0"));
    let plan = plan(&[readonly]);
    let line = "merged /workspace/mine <- /mask/0 + /host/0".to_owned();
    assert!(lines(&plan).contains(&line));
    let mut writable = plan.writable.iter();
    assert!(writable.all(|path| !path.as_str().contains("mine")));
}

#[test]
fn mount_with_git_gets_a_writable_repository_and_a_merged_view_of_its_unchanged_files() {
    let mut with = mount(3, "/workspace/mine");
    with.lowers.insert(0, HostSource::of("/mask/3"));
    with.git = Some(PlannedGit {
        repository: HostSource::of("/git/3"),
        commits: PlannedCommits::Base(with.lowers.clone()),
    });
    let plan = plan(&[mount(0, "/workspace/other"), with]);
    let lines = lines(&plan);
    for line in [
        "file /etc/gitconfig 444",
        "overlay /git/3 /run/codebox/git/3 None",
        "merged /run/codebox/git-base/3 <- /mask/3 + /host/3",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}");
    }
    assert!(!lines.iter().any(|line| line.contains("git/0")));
    let repositories: Vec<_> = plan
        .writable
        .iter()
        .filter(|p| p.as_str().contains("git"))
        .collect();
    assert_eq!(repositories.len(), 1);
}

#[test]
fn writable_bind_mount_is_refused() {
    let mut wrong = mount(0, "/workspace/a");
    wrong.view = MountView::Bind;
    let error = plan_of(&[wrong], &[], TemplateAccess::Run).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountInvalid);
}

#[test]
fn plugins_and_themes_with_equal_slugs_get_different_links() {
    let targets = [
        "/wordpress/wp-content/plugins/x",
        "/wordpress/wp-content/themes/x",
        "/workspace/y",
        "/wordpress/wp-content/plugins/y",
        "/wordpress/wp-content/plugins/z/sub",
    ];
    let targets: Vec<_> = targets.map(|t| GuestPath::new(t).unwrap()).into();
    let paths: Vec<_> = mount_paths(&targets)
        .unwrap()
        .into_iter()
        .map(|paths| paths.link.map(String::from))
        .collect();
    let expected = [
        Some("/workspace/x"),
        Some("/workspace/theme-x"),
        None,
        Some("/workspace/plugin-y"),
        None,
    ];
    assert_eq!(paths, expected.map(|link| link.map(str::to_owned)));
}

#[test]
fn mount_targets_that_cover_guest_directories_are_refused() {
    let code = |targets: &[&str]| {
        let targets: Vec<_> = targets
            .iter()
            .map(|t| GuestPath::new(*t).unwrap())
            .collect();
        mount_paths(&targets)
            .map(drop)
            .map_err(|error| error.code())
    };
    for target in [
        "/",
        "/usr",
        "/usr/x",
        "/tmp",
        "/opt",
        "/opt/codebox/x",
        "/run/codebox",
        "/wordpress",
        "/wordpress/wp-admin",
        "/wordpress/wp-content",
        "/wordpress/wp-content/mu-plugins/wp-codebox-guest.php",
        "/wordpress/wp-content/database",
        "/wordpress/wp-content/database/x",
        "/wordpress/wp-content/db.php",
    ] {
        assert_eq!(
            code(&[target]),
            Err(ErrorCode::MountTargetInvalid),
            "{target}"
        );
    }
    for target in [
        "/workspace/a",
        "/workspace",
        "/workspaces/a",
        "/tmp/a",
        "/opt/a",
        "/harness",
        "/wordpress/wp-content/mu-plugins",
        "/wordpress/wp-content/mu-plugins/a",
        "/wordpress/wp-content/plugins",
    ] {
        assert_eq!(code(&[target]), Ok(()), "{target}");
    }
    let overlap = ["/workspace/a", "/workspace/a/b"];
    assert_eq!(code(&overlap), Err(ErrorCode::MountTargetOverlap));
    assert_eq!(
        code(&["/workspace/a", "/workspace/a"]),
        Err(ErrorCode::MountTargetOverlap)
    );
    assert_eq!(code(&["/workspace/a", "/workspace/ab"]), Ok(()));
}

#[test]
fn staged_file_is_a_read_only_mount_and_is_refused_outside_the_allowed_directories() {
    let stage = |target: &str| {
        let file = StagedFile {
            source: "/host/tool".to_owned(),
            target: target.to_owned(),
        };
        plan_of(&[mount(0, "/workspace/a")], &[file], TemplateAccess::Run)
    };
    let plan = stage("/run/codebox/staged/0-tool").unwrap();
    let last = lines(&plan).pop().unwrap();
    assert_eq!(last, "bind ro host:/host/tool /run/codebox/staged/0-tool");
    for right in [
        "/workspace/tool",
        "/tmp/tool",
        "/harness/tool",
        "/wordpress/wp-content/mu-plugins/tool.php",
    ] {
        let last = lines(&stage(right).unwrap()).pop().unwrap();
        let mounted = format!("bind ro guest:/run/codebox/files/0 {right}");
        let shown = format!("bind ro host:/host/tool {right}");
        let writable = right.starts_with("/tmp") || right.starts_with("/wordpress");
        assert_eq!(last, if writable { mounted } else { shown });
    }
    for wrong in [
        "/opt/codebox/tool",
        "/wordpress/wp-load.php",
        "/wordpress/wp-content/mu-plugins",
        "/etc/passwd",
        "/workspace/a/inside",
        "/workspace/a",
        "/workspace",
        "/run/codebox/staged",
        "/run/codebox/task.json",
    ] {
        assert!(
            matches!(stage(wrong), Err(PlanError::Staged { .. })),
            "{wrong}"
        );
    }
    assert!(matches!(
        stage("/workspace/../etc"),
        Err(PlanError::Path { .. })
    ));
}

#[test]
fn mount_at_mu_plugins_has_the_runtimes_own_mu_plugins_as_its_top_lower_directory() {
    let own = |target: &str| {
        let plan = plan_of(&[mount(0, target)], &[], TemplateAccess::Run).unwrap();
        let lowers = plan.mounts.iter().find_map(|mount| match mount {
            LaunchMount::Overlay {
                lowers, capture, ..
            } if *capture == Some(0) => Some(lowers.clone()),
            _ => None,
        });
        lowers.unwrap()[0].path.ends_with("/mu-plugins")
    };
    assert!(own("/wordpress/wp-content/mu-plugins"));
    assert!(!own("/wordpress/wp-content/mu-plugins/a"));
    assert!(!own("/workspace"));
}

#[test]
fn only_php_below_opt_needs_an_extra_mount_and_only_of_its_own_directory() {
    assert_eq!(
        php("/opt/php83/bin/php").extra_root().as_deref(),
        Some("/opt/php83")
    );
    assert_eq!(php("/opt/codebox/php").extra_root(), None);
    assert_eq!(php("/usr/bin/php8.2").extra_root(), None);
}

#[test]
fn php_ini_replaces_the_hosts_configuration_where_guests_see_it() {
    let plan = |main_file: Option<&str>| {
        let mut php = php("/usr/local/bin/php");
        php.ini_directory = "/usr/local/etc/php".to_owned();
        php.visible = Some(VisibleSettings {
            scan_directory: "/usr/local/etc/php/conf.d".to_owned(),
            main_file: main_file.map(str::to_owned),
        });
        let mut builder = Builder::default();
        php_settings(&mut builder, &php, "memory_limit=-1\n".to_owned()).unwrap();
        shown(&builder.mounts)
    };
    let replaced = [
        "file /run/codebox/php/php.ini 444",
        "bind ro guest:/run/codebox/php /usr/local/etc/php/conf.d",
    ];
    assert_eq!(plan(None), replaced);
    let with_main = plan(Some("/usr/local/etc/php/php.ini"));
    assert_eq!(with_main[..2], replaced);
    assert_eq!(
        with_main[2..],
        [
            "file /run/codebox/php/empty.ini 444",
            "bind ro guest:/run/codebox/php/empty.ini /usr/local/etc/php/php.ini",
        ]
    );
}

#[test]
fn guest_php_ini_loads_extensions_disables_ffi_and_caches_opcodes_in_files_only() {
    let text = php_ini(&php("/usr/bin/php8.2"));
    for line in [
        "extension=pdo.so",
        "zend_extension=opcache.so",
        "ffi.enable=0",
        "opcache.file_cache_only=1",
        "opcache.validate_timestamps=1",
        "opcache.file_cache_consistency_checks=0",
        "opcache.file_cache=/var/cache/codebox/opcache",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn guest_environment_has_14_variables_with_home_and_path_of_the_guest() {
    let environment = environment();
    assert_eq!(environment["HOME"], "/home/agent");
    assert!(environment["PATH"].starts_with("/run/codebox/bin:/opt/codebox/bin:"));
    assert_eq!(environment.len(), 14);
}

#[test]
fn allowed_egress_sets_proxy_php_ini_and_certificate_and_denied_egress_sets_none() {
    let of = |egress: &GuestEgress| plan_with(&[], &[], TemplateAccess::Run, egress).unwrap();
    let file = |plan: &LaunchPlan, name: &str| {
        plan.mounts.iter().find_map(|mount| match mount {
            LaunchMount::File(entry) if entry.target.as_str().ends_with(name) => {
                Some(entry.contents.clone())
            }
            _ => None,
        })
    };
    let denied = of(&GuestEgress::Denied);
    assert_eq!((&denied.egress, denied.mail), (&None, Some(25)));
    let retries = egress_environment(&GuestEgress::Denied);
    assert_eq!(retries.len(), 2, "there are variables of a proxy");
    assert_eq!(retries["npm_config_fetch_retries"], "0");
    assert_eq!(retries["PIP_RETRIES"], "1");
    assert!(!file(&denied, "php.ini").unwrap().contains("prepend"));

    let tunnel = of(&GuestEgress::Tunnel);
    let sockets = tunnel.egress.as_ref().unwrap();
    assert_eq!(
        (sockets.socket.as_str(), sockets.port),
        ("/run/codebox/egress.sock", 3128)
    );
    assert!(file(&tunnel, "egress-ca.pem").is_none());
    let ini = file(&tunnel, "php.ini").unwrap();
    assert!(ini.contains("auto_prepend_file=/opt/codebox/guest/egress.php\n"));
    assert!(!ini.contains("cafile"));
    let env = egress_environment(&GuestEgress::Tunnel);
    assert_eq!(env["https_proxy"], "http://127.0.0.1:3128");
    assert_eq!(env.get("SSL_CERT_FILE"), None);

    let authority = GuestEgress::Terminate {
        authority_pem: "PEM".to_owned(),
    };
    let terminate = of(&authority);
    assert_eq!(file(&terminate, "/egress-ca.pem").as_deref(), Some("PEM"));
    let ini = file(&terminate, "php.ini").unwrap();
    assert!(ini.contains("openssl.cafile=/run/codebox/egress-ca.pem\n"));
    let env = egress_environment(&authority);
    assert_eq!(env["SSL_CERT_FILE"], "/run/codebox/egress-ca.pem");
}

/// Components are host plugins and libraries that the guest's WordPress loads.
#[test]
fn components_are_added_as_read_only_bind_mounts_and_not_as_part_of_the_workspace() {
    let row = |slug: &str, place: &str| PlannedComponent {
        lowers: vec![HostSource::of(format!("/host/{slug}"))],
        target: GuestPath::new(format!("/wordpress/wp-content/{place}/{slug}")).unwrap(),
    };
    let components = PlannedComponents {
        rows: vec![
            row("base", "mu-plugins/contained-runtime"),
            row("agent", "plugins"),
        ],
        list: "[]".to_owned(),
    };
    let of = |mounts: &[PlannedMount]| {
        let run = TemplateAccess::Run;
        plan_for(mounts, &components, &[], run, &GuestEgress::Denied)
    };
    let work = [mount(0, "/wordpress/wp-content/plugins/work")];
    let with = of(&work).unwrap();
    let without = plan(&work);
    let added: Vec<String> = lines(&with)
        .into_iter()
        .filter(|line| !lines(&without).contains(line))
        .collect();
    assert_eq!(
        added,
        [
            "file /run/codebox/components.json 444",
            "bind ro host:/host/base /run/codebox/components/base",
            "bind ro guest:/run/codebox/components/base /wordpress/wp-content/mu-plugins/contained-runtime/base",
            "bind ro host:/host/agent /run/codebox/components/agent",
            "bind ro guest:/run/codebox/components/agent /wordpress/wp-content/plugins/agent",
        ]
    );
    assert_eq!(with.writable, without.writable, "nothing more is writable");
    for taken in ["agent", "agent/src"] {
        let work = [mount(0, &format!("/wordpress/wp-content/plugins/{taken}"))];
        let error = of(&work).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MountTargetOverlap, "{taken}");
    }
}

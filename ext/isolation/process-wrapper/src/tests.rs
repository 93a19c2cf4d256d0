//! Tests of the command line and the audit record that wrappers compute. Only the tests of
//! `to_std` and `prepare_root` touch the host.

use super::*;
use std::collections::BTreeMap;
use std::path::Path;
use wp_codebox_contracts::{CodedError, ErrorCode, OuterSandboxKind, SandboxAudit};

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
        Box::new(GvisorRoot {
            program: "/usr/bin/runsc".to_owned(),
            directory: "/var/lib/wp-codebox/scratch/gvisor".to_owned(),
            root: "/var/lib/wp-codebox/scratch/root".to_owned(),
        }),
    ]
}

/// Pseudo-random numbers (SplitMix64). The same seed gives the same commands on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn word(&mut self) -> String {
        const PARTS: &[&str] = &[
            "a",
            "é",
            " ",
            "=",
            "--",
            ":",
            "\n",
            "'",
            "$x",
            "..",
            "0",
            "\u{1f600}",
        ];
        (0..=self.below(6))
            .map(|_| PARTS[self.below(PARTS.len() as u64) as usize])
            .collect()
    }

    fn list<T>(&mut self, bound: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(bound)).map(|_| one(self)).collect()
    }

    fn command(&mut self) -> HostCommand {
        let mounts = self.list(4, |numbers| {
            let name = numbers.word();
            Mount {
                host: format!("/srv/secret-{name}/{}", numbers.word()),
                target: format!("/work-{name}"),
                label: format!("/work-{name}"),
                access: [MountAccess::Read, MountAccess::Write][numbers.below(2) as usize],
                presence: [Presence::Required, Presence::Optional][numbers.below(2) as usize],
            }
        });
        let mut args = self.list(5, Self::word);
        if let Some(mount) = mounts.first() {
            args.push(mount.host.clone());
            args.push(format!("--dir={}:rw", mount.host));
        }
        args.extend((0..self.below(300)).map(|number| number.to_string()));
        HostCommand {
            program: format!("/opt/secret-bin/{}x", self.word().replace('/', "")),
            args,
            env: self
                .list(3, |numbers| (numbers.word(), numbers.word()))
                .into_iter()
                .collect(),
            cwd: [None, Some("/work".to_owned())][self.below(2) as usize].clone(),
            links: self.list(2, |numbers| Link {
                path: format!("/l{}", numbers.word()),
                to: "usr/lib".to_owned(),
            }),
            mounts,
        }
    }
}

/// Properties of every wrapper for 100 commands: equal input gives equal output, the input is
/// unchanged, the arguments of the program are the last ones, its environment is passed on
/// unchanged, and the audit record is bounded, contains no host path and survives JSON.
#[test]
fn wrapping_is_pure_and_its_audit_record_is_bounded_and_without_host_paths() {
    let mut numbers = Numbers(21);
    let mut cut = 0;
    for _ in 0..100 {
        let command = numbers.command();
        let before = command.clone();
        for sandbox in all() {
            let wrapped = sandbox.wrap(&command);
            assert_eq!(wrapped, sandbox.wrap(&command.clone()));
            assert_eq!(command, before);
            assert!(wrapped.args.ends_with(&command.args), "{wrapped:?}");
            assert_eq!(wrapped.env, command.env);
            let audit = wrapped.audit;
            assert_eq!(audit.kind, kind_name(sandbox.kind()));
            assert!(audit.wrapped_args.len() <= 257);
            assert!(audit.wrapped_args.iter().all(|arg| arg.len() <= 256));
            cut += usize::from(audit.wrapped_args.len() == 257);
            let text = serde_json::to_string(&audit).unwrap();
            for host in ["/srv/secret-", "/opt/secret-bin", "/var/lib", "/usr/bin"] {
                assert!(!text.contains(host), "{host} in {text}");
            }
            // Positive control: what the record hides is in the command.
            let shown = wrapped.args.join(" ");
            assert!(command.mounts.is_empty() || shown.contains("/srv/secret-"));
            let read: SandboxAudit = serde_json::from_str(&text).unwrap();
            assert_eq!(read, audit);
        }
    }
    assert!(cut > 0, "no command was long enough to be cut");
}

/// The record of a program in a guest and the record of a wrapper have the same bounds.
#[test]
fn long_and_many_arguments_are_cut_in_every_audit_record() {
    let mut args = vec!["\u{e9}".repeat(200), "short".to_owned()];
    args.resize(300, "x".to_owned());
    let command = HostCommand {
        program: "/opt/x/tool".to_owned(),
        args: args.clone(),
        ..HostCommand::default()
    };
    let in_run = guest_audit(GuestKind::Run, "/opt/x/tool", &args);
    assert_eq!(in_run, NoSandbox.wrap(&command).audit);
    let mounts = ["/work", "/tool", "/work"].map(str::to_owned).to_vec();
    let launcher = "/usr/libexec/wp-codebox-launch";
    let own = guest_audit(GuestKind::Own { launcher, mounts }, "/tool/tool", &args);
    assert_eq!(own.wrapped_args, in_run.wrapped_args);
    assert_eq!(own.wrapped_args.len(), 257);
    assert_eq!(own.wrapped_args[0], "\u{e9}".repeat(128));
    // Positive control: a short argument is whole.
    assert_eq!(own.wrapped_args[1], "short");
    assert_eq!(own.wrapped_args[256], "[44 more]");
    assert_eq!(
        (own.kind.as_str(), own.wrapper_name.as_str()),
        ("launcher", "wp-codebox-launch")
    );
    assert_eq!(own.mounts, ["/tool", "/work"]);
}

#[test]
fn json_of_an_audit_record_has_exactly_the_six_published_field_names() {
    let wrapped = Unwrapped {
        reason: "x".to_owned(),
    }
    .wrap(&HostCommand::default());
    let json = serde_json::to_value(&wrapped.audit).unwrap();
    let names: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "kind",
            "wrapperName",
            "wrappedCmd",
            "wrappedArgs",
            "mounts",
            "reason"
        ]
    );
}

fn call() -> ToolCall {
    ToolCall {
        runner: "/opt/x/libexec/wp-codebox-wasi".to_owned(),
        definition: "/var/lib/s/tools/css.lint/definition.json".to_owned(),
        module: "/var/lib/s/tools/css.lint/module.wasm".to_owned(),
        compiled: Some("/var/lib/s/tools/css.lint/k.cwasm".to_owned()),
        directory: Some(ToolDirectory {
            host: "/var/lib/s/scratch/root/work".to_owned(),
            access: MountAccess::Write,
        }),
        args: vec!["--strict".to_owned()],
    }
}

#[test]
fn tool_call_names_host_paths_without_a_wrapper_and_inner_paths_inside_one() {
    let bare = call().command(OuterSandboxKind::None);
    assert_eq!(
        bare.args.join(" "),
        "run --confirm --definition /var/lib/s/tools/css.lint/definition.json \
         --module /var/lib/s/tools/css.lint/module.wasm \
         --compiled /var/lib/s/tools/css.lint/k.cwasm \
         --dir /var/lib/s/scratch/root/work=/work:rw -- --strict"
    );
    for kind in [OuterSandboxKind::Bubblewrap, OuterSandboxKind::Gvisor] {
        assert_eq!(
            call().command(kind).args.join(" "),
            "run --confirm --definition /tool/definition.json --module /tool/module.wasm \
             --compiled /tool/module.cwasm --dir /work=/work:rw -- --strict"
        );
    }
    assert_eq!(
        call().guest_arguments(),
        call().command(OuterSandboxKind::Gvisor).args
    );
    let sandbox = Bubblewrap {
        program: "/usr/bin/bwrap".to_owned(),
    };
    let wrapped = sandbox.wrap(&call().command(OuterSandboxKind::Bubblewrap));
    let shown = wrapped.args.join(" ");
    assert!(
        shown.contains("--bind /var/lib/s/scratch/root/work /work "),
        "{shown}"
    );
    assert!(
        shown.contains("--ro-bind /var/lib/s/tools/css.lint/module.wasm /tool/module.wasm "),
        "{shown}"
    );
    assert_eq!(
        wrapped.audit.mounts,
        [
            "/dev",
            "/proc",
            "/tmp",
            "/tool/definition.json",
            "/tool/module.cwasm",
            "/tool/module.wasm",
            "/usr",
            "/work"
        ]
    );
}

#[test]
fn std_command_has_the_arguments_and_only_the_environment_of_the_wrapped_command() {
    let mut command = HostCommand {
        program: "/bin/sh".to_owned(),
        args: ["-c", "pwd; echo \"$1\"; /usr/bin/env", "sh", "given"]
            .map(str::to_owned)
            .to_vec(),
        env: BTreeMap::from([("MARK".to_owned(), "set".to_owned())]),
        cwd: Some("/usr".to_owned()),
        ..HostCommand::default()
    };
    let run = |command: &HostCommand| {
        let output = NoSandbox.wrap(command).to_std().output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = run(&command);
    assert!(shown.starts_with("/usr\ngiven\n"), "{shown}");
    assert!(
        shown.contains("MARK=set") && !shown.contains("CARGO"),
        "{shown}"
    );
    // Control: without the variable, the output does not contain it.
    command.env.clear();
    assert!(!run(&command).contains("MARK"));
}

/// Under gVisor a tool sees only a prepared root directory with copies of the runner, the
/// definition and the module.
#[test]
fn prepared_root_gets_copies_of_the_files_and_a_directory_outside_it_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(path("root/work")).unwrap();
    for name in ["runner", "d.json", "m.wasm"] {
        std::fs::write(path(name), name).unwrap();
    }
    let mut call = ToolCall {
        runner: path("runner"),
        definition: path("d.json"),
        module: path("m.wasm"),
        compiled: None,
        directory: Some(ToolDirectory {
            host: path("root/work"),
            access: MountAccess::Write,
        }),
        args: Vec::new(),
    };
    let root = path("root");
    let prepare =
        |call: &ToolCall| prepare_root(Path::new(&root), &call.command(OuterSandboxKind::Gvisor));
    prepare(&call).unwrap();
    for (at, content) in [
        ("root/run/runner", "runner"),
        ("root/tool/module.wasm", "m.wasm"),
        ("root/tool/definition.json", "d.json"),
    ] {
        assert_eq!(std::fs::read_to_string(path(at)).unwrap(), content);
    }
    for access in [MountAccess::Write, MountAccess::Read] {
        call.directory = Some(ToolDirectory {
            host: place.path().to_str().unwrap().to_owned(),
            access,
        });
        let refused = prepare(&call).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SandboxStartFailed);
        assert!(!refused.to_string().contains(&root), "{refused}");
    }
}

#[test]
fn missing_wrapper_program_is_refused_and_a_program_without_a_wrapper_is_invalid_input() {
    use OuterSandboxKind::{Bubblewrap, Gvisor, None as NoWrapper};
    for kind in [Bubblewrap, Gvisor] {
        let refused = find_program(kind, Some("/nonexistent/w")).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SandboxWrapperMissing);
        // Positive control: any executable is accepted.
        let found = find_program(kind, Some("/bin/sh")).unwrap();
        assert_eq!(found.as_deref(), Some("/bin/sh"));
    }
    assert_eq!(find_program(NoWrapper, None).unwrap(), None);
    let refused = find_program(NoWrapper, Some("/bin/sh")).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InputInvalid);
}

//! Determines which program in the guest carries out a registry command, agent or check.

use crate::call::Call;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    AgentCommand, CommandCall, ErrorBody, ErrorCode, GuestPath, MountAccess, SITE_ORIGIN,
};
use wp_codebox_policy::{
    CommandDescriptor, GuestProgram, Handler, arg_value, command_line, descriptor, is_blank_option,
    is_true, line_words, list_words,
};

/// Guest path of the PHP program that loads WordPress and then runs the PHP code of a command.
const RUN_PHP: &str = "/opt/codebox/guest/run-php.php";
const INSPECT: &str = "/opt/codebox/guest/inspect-mounted-inputs.php";
/// Guest directory of the PHP programs for individual registry commands.
const PROGRAMS: &str = "/opt/codebox/guest/commands";
/// Limits of recorded diagnostics. A call that asks for more gets this many.
const DIAGNOSTICS_ITEMS: u64 = 500;
const DIAGNOSTICS_BYTES: u64 = 524_288;
/// Guest path of the file into which the program run-php writes diagnostics such as database
/// queries.
pub const DIAGNOSTICS: &str = "/tmp/codebox-artifacts/wpdb-queries.json";
/// Name, in the command registry, of the sandbox command that executes the run's agent.
pub const AGENT_COMMAND: &str = "command-agent-run";

/// A mount as programs in the guest see it.
#[derive(Debug, Clone)]
pub struct GuestMount {
    /// Guest path of the mount, as the request declared it.
    pub target: GuestPath,
    /// Symbolic link below `/workspace` to a plugin or theme.
    pub link: Option<GuestPath>,
    /// Whether the guest may write to the mount.
    pub access: MountAccess,
}

impl GuestMount {
    /// Returns the guest paths of the mount's directory: the target, then the link to it.
    pub fn names(&self) -> impl Iterator<Item = &GuestPath> {
        std::iter::once(&self.target).chain(&self.link)
    }
}

/// Returns the working directory of programs: the first writable mount, otherwise the first mount,
/// otherwise `/tmp`.
pub fn working_directory(mounts: &[GuestMount]) -> Result<GuestPath, ErrorBody> {
    let first = mounts
        .iter()
        .find(|m| m.access == MountAccess::Readwrite)
        .or_else(|| mounts.first());
    match first {
        Some(mount) => Ok(mount.target.clone()),
        None => {
            GuestPath::new("/tmp").map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))
        }
    }
}

/// Returns the guest program that carries out a registry command. The caller has validated the
/// arguments against the registry.
pub fn command_program(
    call: &CommandCall,
    mounts: &[GuestMount],
    cwd: &GuestPath,
) -> Result<Call, ErrorBody> {
    let value = |name| arg_value(call, name).unwrap_or_default();
    let invalid =
        |what: String| ErrorBody::new(ErrorCode::InputInvalid, format!("{}: {what}", call.command));
    let mut env = BTreeMap::new();
    let (argv, stdin) = match call.command.as_str() {
        "inspect-mounted-inputs" => {
            let rows: Vec<_> = mounts
                .iter()
                .map(|m| json!({"target": m.target, "source": m.target, "mode": m.access}))
                .collect();
            (
                words(&["php", INSPECT]),
                Some(json!(rows).to_string().into_bytes()),
            )
        }
        "wordpress.run-php" => {
            env.extend(diagnostics(call, &invalid)?);
            run_php(call, &invalid)?
        }
        "wordpress.wp-cli" => (wp_cli(call, &invalid)?, None),
        AGENT_COMMAND => {
            let mut argv = words(&[value("command")]);
            let list = list_words(value("args-json"));
            argv.extend(list.ok_or_else(|| {
                invalid("args-json must be a JSON list of strings, numbers and booleans".to_owned())
            })?);
            env.extend(requester_variables(call)?);
            (argv, None)
        }
        other => match descriptor(other).map(|found| (found, found.handler)) {
            Some((found, Handler::Program(GuestProgram::File(file)))) => {
                let document = stdin_document(found, call, mounts);
                let document = document.map_err(|e| invalid(e.to_string()))?;
                (
                    guest_command(&format!("{PROGRAMS}/{file}")),
                    Some(document.to_string().into_bytes()),
                )
            }
            _ => {
                return Err(ErrorBody::new(
                    ErrorCode::CommandUnknown,
                    format!(
                        "no program in the guest runs the command {other:?}; `wp-codebox commands` lists the commands"
                    ),
                ));
            }
        },
    };
    Ok(Call {
        command: call.command.clone(),
        args: call.args.clone(),
        phase: "workflow",
        argv,
        env,
        cwd: cwd.clone(),
        stdin,
    })
}

/// Returns the command line of a PHP program that reads the call of a command from standard input.
/// `-n`: the process only starts and supervises a second one and needs no settings or extensions.
#[must_use]
pub fn guest_command(path: &str) -> Vec<String> {
    words(&["php", "-n", path])
}

type Variables = Vec<(String, String)>;

/// Returns the environment variables that tell an agent's program which user and session requested
/// the run. The caller of the run chose these values and nothing verifies them, so they give the
/// program no rights.
///
/// # Errors
///
/// `auth-required` is set, but `auth-context-json` names no one, or a value is too long.
pub fn requester_variables(call: &CommandCall) -> Result<Vec<(String, String)>, ErrorBody> {
    let invalid =
        |what: String| ErrorBody::new(ErrorCode::InputInvalid, format!("{}: {what}", call.command));
    let required = arg_value(call, "auth-required").is_some_and(is_true);
    let named = |value: &str| !matches!(value.trim(), "" | "{}");
    if required && !arg_value(call, "auth-context-json").is_some_and(named) {
        return Err(invalid(
            "auth-required is set, but auth-context-json is missing or empty".to_owned(),
        ));
    }
    let told = [
        ("session-id", "CODEBOX_SESSION_ID"),
        ("correlation-id", "CODEBOX_CORRELATION_ID"),
        ("session-metadata-json", "CODEBOX_SESSION_METADATA"),
        ("auth-context-json", "CODEBOX_AUTH_CONTEXT"),
    ];
    let mut variables = Vec::new();
    for (argument, variable) in told {
        if let Some(value) = arg_value(call, argument) {
            if value.contains('\0') || value.len() > 64 * 1024 {
                return Err(invalid(format!(
                    "{argument} is longer than 64 KiB or contains a NUL byte"
                )));
            }
            variables.push((variable.to_owned(), value.to_owned()));
        }
    }
    Ok(variables)
}

/// Returns the environment variable that tells run-php which diagnostics to record.
fn diagnostics(
    call: &CommandCall,
    invalid: &dyn Fn(String) -> ErrorBody,
) -> Result<Variables, ErrorBody> {
    let given = |name| arg_value(call, name).filter(|value| !value.trim().is_empty());
    if given("capture-diagnostics").is_none() {
        return Ok(Vec::new());
    }
    if arg_value(call, "bootstrap") == Some("none") {
        return Err(invalid(
            "capture-diagnostics needs WordPress; leave bootstrap=none out".to_owned(),
        ));
    }
    let most = |name, otherwise: u64, limit: u64| {
        let number = given(name).and_then(|value| value.parse().ok());
        number.unwrap_or(otherwise).min(limit)
    };
    // `wpdb-queries` is the only kind of diagnostics that the registry accepts.
    let told = json!({
        "capture": "wpdb-queries",
        "maxItems": most("diagnostics-max-items", 100, DIAGNOSTICS_ITEMS),
        "maxBytes": most("diagnostics-max-bytes", 65_536, DIAGNOSTICS_BYTES),
        "file": DIAGNOSTICS,
    });
    Ok(vec![("CODEBOX_DIAGNOSTICS".to_owned(), told.to_string())])
}

/// Returns the JSON document that a command's program receives on standard input. Blank values of
/// optional arguments are left out.
fn stdin_document(
    found: &CommandDescriptor,
    call: &CommandCall,
    mounts: &[GuestMount],
) -> Result<Value, shell_words::ParseError> {
    let mut args = Map::new();
    for (name, value) in call.args.iter().filter_map(|arg| arg.split_once('=')) {
        let Some(accepted) = found.accepted_args.iter().find(|a| a.name == name) else {
            continue;
        };
        if is_blank_option(found, accepted, value) {
            continue;
        }
        if accepted.repeatable {
            let values = args.entry(name).or_insert_with(|| json!([]));
            if let Some(values) = values.as_array_mut() {
                values.push(json!(value));
            }
        } else {
            args.insert(name.to_owned(), json!(value));
        }
    }
    // The program splits the line again, by the same rules.
    if !line_words(found, call).is_empty() {
        let line = shell_words::join(command_line(found, call)?);
        args.insert("command".to_owned(), json!(line));
    }
    let mounts: Vec<_> = mounts
        .iter()
        .map(|m| json!({"target": m.target, "link": m.link, "mode": m.access}))
        .collect();
    Ok(json!({
        "command": call.command,
        "args": args,
        "mounts": mounts,
        "site": {"url": SITE_ORIGIN, "path": "/wordpress"},
    }))
}

fn wp_cli(
    call: &CommandCall,
    invalid: &dyn Fn(String) -> ErrorBody,
) -> Result<Vec<String>, ErrorBody> {
    let mut argv = words(&["wp"]);
    if let Some(found) = descriptor(&call.command) {
        argv.extend(command_line(found, call).map_err(|e| invalid(e.to_string()))?);
    }
    if argv.len() == 1 {
        return Err(invalid(
            "command is empty: name a command of WP-CLI, like plugin list".to_owned(),
        ));
    }
    Ok(argv)
}

type Program = (Vec<String>, Option<Vec<u8>>);

fn run_php(
    call: &CommandCall,
    invalid: &dyn Fn(String) -> ErrorBody,
) -> Result<Program, ErrorBody> {
    let given = |name| arg_value(call, name).filter(|value: &&str| !value.trim().is_empty());
    let mut argv = match given("bootstrap").unwrap_or("wordpress") {
        "wordpress" => words(&["php", RUN_PHP]),
        "none" => words(&["php"]),
        other => {
            return Err(invalid(format!(
                "bootstrap is {other:?}, but must be wordpress or none"
            )));
        }
    };
    match (given("code"), given("code-file")) {
        (Some(code), None) if code.len() <= 1 << 20 => {
            if argv.len() > 1 {
                argv.push("-".to_owned());
            }
            Ok((argv, Some(php_source(code).into_bytes())))
        }
        (Some(_), None) => Err(invalid(
            "code is larger than 1 MiB; stage a file and use code-file".to_owned(),
        )),
        (None, Some(file)) => {
            let file = GuestPath::new(file).map_err(|e| invalid(e.to_string()))?;
            argv.push(file.as_str().to_owned());
            Ok((argv, None))
        }
        _ => Err(invalid("give either code or code-file".to_owned())),
    }
}

/// Returns PHP code as the content of a PHP file: with an opening tag, unless it has one.
fn php_source(code: &str) -> String {
    let code_after_blanks = code.trim_start_matches('\u{feff}').trim_start();
    let head: String = code_after_blanks.chars().take(5).collect();
    if head.eq_ignore_ascii_case("<?php") || head.starts_with("<?=") {
        code_after_blanks.to_owned()
    } else {
        format!("<?php\n{code}")
    }
}

/// Returns the call of the guest program that is the run's agent.
pub fn agent_program(agent: &AgentCommand, cwd: &GuestPath) -> Call {
    let mut env = agent.env.clone();
    env.insert("WP_AGENT_RUNTIME".to_owned(), "1".to_owned());
    Call {
        command: AGENT_COMMAND.to_owned(),
        args: agent.argv.clone(),
        phase: "agent",
        argv: agent.argv.clone(),
        env,
        cwd: cwd.clone(),
        stdin: None,
    }
}

/// Returns the program of a check. Splitting the command line `line` cannot fail here, because
/// request validation has already split it once without error.
pub fn check_program(line: &str, cwd: &GuestPath) -> Result<Call, ErrorBody> {
    let argv = wp_codebox_policy::command_words(line)?;
    Ok(Call {
        command: "check".to_owned(),
        args: argv.clone(),
        phase: "check",
        argv,
        env: BTreeMap::new(),
        cwd: cwd.clone(),
        stdin: None,
    })
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn call(command: &str, args: &[&str]) -> CommandCall {
        CommandCall {
            command: command.to_owned(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
        }
    }

    #[test]
    fn commands_are_translated_to_argv_without_a_shell_and_invalid_arguments_are_refused() {
        let cwd = GuestPath::new("/workspace/a").unwrap();
        let wp = command_program(
            &call(
                "wordpress.wp-cli",
                &["command=option get 'blog name' ; rm -rf /"],
            ),
            &[],
            &cwd,
        )
        .unwrap();
        assert_eq!(
            wp.argv,
            ["wp", "option", "get", "blog name", ";", "rm", "-rf", "/"]
        );
        let php =
            command_program(&call("wordpress.run-php", &["code=echo 1;"]), &[], &cwd).unwrap();
        assert_eq!(php.stdin.as_deref(), Some(&b"<?php\necho 1;"[..]));
        let agent = command_program(
            &call("command-agent-run", &["command=ls", "args-json=[\"-l a\"]"]),
            &[],
            &cwd,
        )
        .unwrap();
        assert_eq!(agent.argv, ["ls", "-l a"]);
        for (id, args) in [
            ("wordpress.run-php", vec![]),
            ("wordpress.run-php", vec!["code=1", "code-file=/a"]),
            ("wordpress.run-php", vec!["code-file=../a"]),
            ("wordpress.run-php", vec!["code=1", "bootstrap=x"]),
            ("wordpress.wp-cli", vec!["command='"]),
            ("wordpress.wp-cli", vec!["command=wp "]),
            ("command-agent-run", vec!["command=ls", "args-json={}"]),
        ] {
            assert_eq!(
                command_program(&call(id, &args), &[], &cwd)
                    .unwrap_err()
                    .code,
                ErrorCode::InputInvalid,
                "{id} {args:?}"
            );
        }
    }

    #[test]
    fn opening_tag_is_added_to_php_code_only_if_the_code_does_not_begin_with_one() {
        for (code, source) in [
            ("echo 1;", "<?php\necho 1;"),
            ("<?php echo 1;", "<?php echo 1;"),
            ("\n  <?PHP\necho 1;", "<?PHP\necho 1;"),
            ("<?= 1 ?>", "<?= 1 ?>"),
            ("?>text", "<?php\n?>text"),
        ] {
            assert_eq!(php_source(code), source, "{code:?}");
        }
    }

    #[test]
    fn wp_cli_command_may_begin_with_wp_and_each_further_argument_is_one_word_of_it() {
        let cwd = GuestPath::new("/tmp").unwrap();
        let argv = |args: &[&str]| {
            command_program(&call("wordpress.wp-cli", args), &[], &cwd)
                .unwrap()
                .argv
        };
        assert_eq!(
            argv(&["command=wp option get home"]),
            ["wp", "option", "get", "home"]
        );
        assert_eq!(
            argv(&[
                "command=wp",
                "post",
                "create",
                "--post_title=A b",
                "--meta='c d'"
            ]),
            ["wp", "post", "create", "--post_title=A b", "--meta=c d"]
        );
        let recorded = call(
            "wordpress.invoke-wp-cli",
            &[
                "command=wp option",
                "update",
                "blogname",
                "A 'b",
                "mutates=",
            ],
        );
        let error = command_program(&recorded, &[], &cwd).unwrap_err();
        assert_eq!(error.code, ErrorCode::InputInvalid, "{}", error.message);
        let recorded = call(
            "wordpress.invoke-wp-cli",
            &["command=wp option", "update", "blogname", "A b", "mutates="],
        );
        let made = command_program(&recorded, &[], &cwd).unwrap();
        let told: Value = serde_json::from_slice(&made.stdin.unwrap()).unwrap();
        assert_eq!(
            told["args"],
            json!({"command": "option update blogname 'A b'"})
        );
    }

    #[test]
    fn requested_diagnostics_limits_above_the_maximum_are_lowered_to_the_maximum() {
        let told = |args: &[&str]| {
            let call = call("wordpress.run-php", args);
            let cwd = GuestPath::new("/tmp").unwrap();
            let made = command_program(&call, &[], &cwd).unwrap();
            let told = made.env.get("CODEBOX_DIAGNOSTICS")?;
            serde_json::from_str::<Value>(told).ok()
        };
        let asked = [
            "code=1;",
            "capture-diagnostics=wpdb-queries,wpdb-queries",
            "diagnostics-max-items=1000000",
            "diagnostics-max-bytes=1",
        ];
        let found = told(&asked).unwrap();
        assert_eq!(found["capture"], "wpdb-queries");
        assert_eq!(
            (&found["maxItems"], &found["maxBytes"]),
            (&json!(500), &json!(1))
        );
        assert_eq!(
            told(&["code=1;", "capture-diagnostics=", "bootstrap="]),
            None
        );
    }

    /// Every guest program that the command registry names exists, and the registry names every
    /// program file except two.
    #[test]
    fn command_registry_and_guest_program_files_match() {
        let directory = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../../share/guest/commands");
        let named: BTreeSet<String> = wp_codebox_policy::registry()
            .filter_map(|c| match c.handler {
                Handler::Program(GuestProgram::File(file)) => Some(file.to_owned()),
                _ => None,
            })
            .collect();
        let there: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".php"))
            .collect();
        let unnamed: Vec<_> = there.difference(&named).map(String::as_str).collect();
        let missing: Vec<_> = named.difference(&there).collect();
        assert_eq!(missing, Vec::<&String>::new());
        // No registry command names these two programs: the supervisor starts them itself.
        assert_eq!(unnamed, ["browser-state.php", "observe.php"]);
    }

    #[test]
    fn guest_program_gets_its_call_on_stdin_and_an_agent_command_its_auth_context_in_env() {
        let cwd = GuestPath::new("/tmp").unwrap();
        let made = command_program(
            &call("wordpress.rest-request", &["path=/a=b", "params-json={}"]),
            &[],
            &cwd,
        )
        .unwrap();
        assert_eq!(
            made.argv,
            ["php", "-n", "/opt/codebox/guest/commands/rest-request.php"]
        );
        let told: Value = serde_json::from_slice(&made.stdin.unwrap()).unwrap();
        assert_eq!(told["command"], "wordpress.rest-request");
        assert_eq!(told["args"], json!({"path": "/a=b", "params-json": "{}"}));
        assert_eq!(told["site"]["url"], "http://localhost");
        let agent = |args: &[&str]| command_program(&call("command-agent-run", args), &[], &cwd);
        let named = [
            "command=x",
            "auth-required=1",
            "auth-context-json={\"u\":1}",
        ];
        let env = agent(&named).unwrap().env;
        assert_eq!(env["CODEBOX_AUTH_CONTEXT"], "{\"u\":1}");
        let nobody = agent(&named[..2]).unwrap_err();
        assert_eq!(nobody.code, ErrorCode::InputInvalid);
    }

    #[test]
    fn working_directory_is_the_first_writable_mount_else_the_first_mount_else_tmp() {
        let row = |target: &str, access| GuestMount {
            target: GuestPath::new(target).unwrap(),
            link: None,
            access,
        };
        let mounts = [
            row("/workspace/ro", MountAccess::Readonly),
            row("/workspace/rw", MountAccess::Readwrite),
        ];
        assert_eq!(
            working_directory(&mounts).unwrap().as_str(),
            "/workspace/rw"
        );
        assert_eq!(
            working_directory(&mounts[..1]).unwrap().as_str(),
            "/workspace/ro"
        );
        assert_eq!(working_directory(&[]).unwrap().as_str(), "/tmp");
    }
}

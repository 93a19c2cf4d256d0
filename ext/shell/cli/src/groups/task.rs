//! The run request of a task in JSON, with the arguments and settings of a command.

use super::args::TaskArgs;
use crate::preview::PreviewArgs;
use crate::request::environment;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunRequest};
use wp_codebox_runs::{TaskOptions, task_request};
use wp_codebox_settings::Settings;

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Removes the members about a preview from the input of a task; returns them as options. An option
/// of the command line takes precedence over the member of the same name.
pub(super) fn preview(
    input: &mut Map<String, Value>,
    options: &PreviewArgs,
) -> Result<PreviewArgs, ErrorBody> {
    let mut wanted = options.clone();
    let wrong = |name: &str, kind: &str| invalid(format!("{name} must be {kind}"));
    if let Some(value) = input.remove("preview_hold_seconds") {
        let seconds = value
            .as_u64()
            .ok_or_else(|| wrong("preview_hold_seconds", "a whole number of seconds"))?;
        // As in the input of the WordPress abilities, 0 seconds means no preview.
        if seconds > 0 && wanted.preview_hold.is_none() {
            wanted
                .preview_hold_seconds
                .get_or_insert(seconds.to_string());
        }
    }
    if let Some(value) = input.remove("preview_port") {
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| wrong("preview_port", "a port number"))?;
        wanted.preview_port.get_or_insert(port);
    }
    for (name, place) in [
        ("preview_bind", &mut wanted.preview_bind),
        ("preview_public_url", &mut wanted.preview_public_url),
    ] {
        if let Some(value) = input.remove(name) {
            let text = value.as_str().ok_or_else(|| wrong(name, "a text"))?;
            place.get_or_insert_with(|| text.to_owned());
        }
    }
    if input.contains_key("preview_lease") {
        return Err(invalid(
            "preview_lease cannot be given, because the supervisor of the run makes the lease; remove it, and read the lease with `wp-codebox preview-lease status`",
        ));
    }
    let time = wanted.preview_hold.is_some() || wanted.preview_hold_seconds.is_some();
    let place = wanted.preview_port.is_some()
        || wanted.preview_bind.is_some()
        || wanted.preview_public_url.is_some();
    match place && !time {
        true => Err(invalid(
            "preview_port, preview_bind and preview_public_url need preview_hold_seconds",
        )),
        false => Ok(wanted),
    }
}

/// Converts the input of one task to a run request.
pub fn request(
    input: &Map<String, Value>,
    args: &TaskArgs,
    settings: &Settings,
) -> Result<RunRequest, ErrorBody> {
    let options = TaskOptions {
        site: &args.store.site,
        max_runs: args.max_runs,
        model_key_env: args.model_key_env.as_deref(),
        model_api: args.model_api.as_deref(),
        environment,
        settings,
        place: &|request| args.placement.place(request, None),
    };
    task_request(input, &options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::output::Output;
    use crate::run_args::{self, RunArgs};
    use clap::Parser;
    use serde_json::json;

    fn parse(flags: &[&str]) -> Command<crate::HandedOver> {
        Cli::<crate::HandedOver>::try_parse_from(flags)
            .unwrap()
            .command
    }

    fn run(flags: &[&str]) -> (RunArgs, Settings) {
        let all = [&["wp-codebox", "run", "--wordpress=/srv/wordpress"], flags].concat();
        let Command::Run(args) = parse(&all) else {
            panic!("run");
        };
        let settings = Settings::resolve(&args.store.paths).unwrap();
        (*args, settings)
    }

    fn read(input: &Value) -> Result<RunRequest, ErrorBody> {
        let all = ["wp-codebox", "agent-sandbox-run", "--input-file=-"];
        let Command::AgentSandboxRun(args) = parse(&all) else {
            panic!("agent-sandbox-run");
        };
        request(input.as_object().unwrap(), &args.task, &run(&[]).1)
    }

    #[test]
    fn task_given_by_flags_or_by_json_gives_the_same_run_request() {
        let by_json = read(&json!({
            "goal": "Fix it", "agent_command": "sh 'fix it.sh'", "checks": ["true"],
            "mounts": [{"source": "/srv/a:b", "target": "/workspace/x", "mode": "readonly"}],
            "find_renames": true, "task_timeout_seconds": 90,
            "follow_up_of": {"artifact_id": "run_0c4f",
                "comments": [{"path": "a.php", "line": 3, "body": "rename it"}]},
        }))
        .unwrap();
        let (args, settings) = run(&[
            "--goal=Fix it",
            "--agent-command=sh 'fix it.sh'",
            "--check=true",
            "--mount=/srv/a:b:/workspace/x:readonly",
            "--find-renames",
            "--timeout=90s",
            "--follow-up=run_0c4f",
            "--comment=a.php:3=rename it",
        ]);
        let by_flags = RunRequest {
            run_id: by_json.run_id.clone(),
            ..run_args::build(&args, &settings, Output::new(true)).unwrap()
        };
        assert_eq!(by_json, by_flags);
    }

    #[test]
    fn preview_fields_of_a_task_are_moved_into_the_options_and_need_a_hold_time() {
        let read = |input: Value, options: &PreviewArgs| {
            let mut input = input.as_object().unwrap().clone();
            preview(&mut input, options).map(|wanted| (wanted, input))
        };
        let plain = PreviewArgs::default();
        let given = json!({"goal": "g", "preview_hold_seconds": 60, "preview_port": 8080});
        let (wanted, rest) = read(given.clone(), &plain).unwrap();
        assert_eq!(wanted.preview_hold_seconds.as_deref(), Some("60"));
        assert_eq!((wanted.preview_port, rest.len()), (Some(8080), 1));
        let option = PreviewArgs {
            preview_hold: Some("9s".to_owned()),
            ..PreviewArgs::default()
        };
        assert_eq!(read(given, &option).unwrap().0.preview_hold_seconds, None);
        for wrong in [
            json!({"preview_port": 80}),
            json!({"preview_hold_seconds": "x"}),
            json!({"preview_hold_seconds": 9, "preview_port": 70_000}),
            json!({"preview_hold_seconds": 9, "preview_lease": {}}),
        ] {
            assert!(read(wrong.clone(), &plain).is_err(), "{wrong}");
        }
        let none = read(json!({"preview_hold_seconds": 0}), &plain).unwrap().0;
        assert_eq!(none.preview_hold_seconds, None);
    }

    #[test]
    fn error_for_conflicting_or_unknown_task_fields_names_the_field() {
        for (fields, name) in [
            (json!({"agent": "a", "agent_command": "b"}), "agent"),
            (json!({"model": "m"}), "base_url"),
            (json!({"agent_command": "b", "max_turns": 1}), "max_turns"),
            (json!({"agent_env": {"A": "b"}, "agent": "a"}), "agent_env"),
            (json!({"agent_command": "b", "frobnicate": 1}), "frobnicate"),
            (json!({"agent_command": "b", "site": "other"}), "site"),
            (json!({"agent_command": "b", "plugin": "p"}), "plugin"),
            (
                json!({"workload": {"schema": "wp-codebox/agent-workload/v1", "task": "t",
                    "agent_runtime": {"runtime_task": {"ability": "a/b"}}}}),
                "runtime_task",
            ),
        ] {
            let mut input = json!({"goal": "Fix it"});
            let members = input.as_object_mut().unwrap();
            members.extend(fields.as_object().unwrap().clone());
            let error = read(&input).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{fields}");
            assert!(error.message.contains(name), "{}", error.message);
        }
    }
}

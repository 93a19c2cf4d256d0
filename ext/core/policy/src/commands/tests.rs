use super::*;
use crate::defaults;
use std::collections::BTreeSet;
use wp_codebox_contracts::{CodedError, CommandCall, ErrorCode};

fn call(command: &str, args: &[&str]) -> CommandCall {
    CommandCall {
        command: command.to_owned(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
    }
}

fn everything() -> wp_codebox_contracts::RuntimePolicy {
    defaults(registry().map(|c| c.id.to_owned()).collect())
}

#[test]
fn command_that_the_policy_does_not_list_or_the_registry_does_not_know_is_refused() {
    let policy = defaults(vec!["wordpress.run-php".to_owned(), "nope".to_owned()]);
    assert!(assert_command(&policy, &call("wordpress.run-php", &["code=echo 1=1;"])).is_ok());
    let denied =
        assert_command(&policy, &call("wordpress.wp-cli", &["command=option list"])).unwrap_err();
    assert_eq!(denied.body().code, ErrorCode::CommandDisallowed);
    let unknown = assert_command(&policy, &call("nope", &[])).unwrap_err();
    assert_eq!(unknown.body().code, ErrorCode::CommandUnknown);
    let prefix = assert_command(&policy, &call("wordpress.run", &[])).unwrap_err();
    assert_eq!(prefix.body().code, ErrorCode::CommandDisallowed);
}

#[test]
fn agent_command_is_accepted_as_a_recipe_step_and_refused_alone_and_inside_command_agent_run() {
    let all = everything();
    let agent = call("wp-codebox.agent-sandbox-run", &["task=x", "max-turns="]);
    assert!(assert_step(&all, &agent).is_ok());
    let alone = assert_command(&all, &agent).unwrap_err();
    assert_eq!(alone.body().code, ErrorCode::CommandUnsupported);
    assert!(alone.to_string().contains("recipe-run"), "{alone}");
    let unlisted = assert_command(&defaults(Vec::new()), &agent).unwrap_err();
    assert_eq!(unlisted, alone);
    let target = call(
        "command-agent-run",
        &[
            "command=wp-codebox.agent-sandbox-run",
            "args-json=[\"task=x\"]",
        ],
    );
    assert!(assert_step(&all, &target).is_err());
    let fanout = call("wp-codebox.agent-fanout", &["request-json={}"]);
    let fanout = assert_step(&all, &fanout).unwrap_err();
    assert!(
        fanout.to_string().contains("cannot start guests"),
        "{fanout}"
    );
}

#[test]
fn block_exercise_runs_in_the_editor_only_with_mode_editor_insert_save() {
    let exercise = |mode| call("wordpress.block-exercise", &["block-name=core/code", mode]);
    assert!(runs_block_editor(&exercise("mode=editor-insert-save")));
    assert!(!runs_block_editor(&exercise("mode=render")));
    assert!(!runs_block_editor(&call(
        "wordpress.block-render",
        &["mode=editor-insert-save"]
    )));
}

/// The workload program in the guest has its own list of arguments, which must match the
/// registry.
#[test]
fn workload_program_accepts_the_same_command_arguments_as_the_registry() {
    let source = include_str!("../../../../../share/guest/commands/lib/workload.php");
    for id in [
        "wordpress.ability",
        "wordpress.rest-request",
        "wordpress.db-operation",
        "wordpress.runtime-discovery",
        "wordpress.inventory-database",
        "wordpress.bench",
    ] {
        let row = source
            .lines()
            .find_map(|line| line.trim().strip_prefix(&format!("'{id}'")))
            .unwrap();
        let listed: Vec<&str> = row.split('\'').skip(1).step_by(2).collect();
        let known: Vec<&str> = descriptor(id)
            .unwrap()
            .accepted_args
            .iter()
            .map(|arg| arg.name)
            .collect();
        assert_eq!(listed, known, "{id}");
    }
}

/// Returns sample values of an argument. `format` is its format in the public contract,
/// `tests/conformance/public/commands.json`.
fn public_samples(name: &str, format: &str) -> Vec<String> {
    let samples: &[&str] = match format {
        "JSON object" => &["{}", "{\"a\":{\"b\":[1]}}"],
        "JSON array" => &["[]", "[1,{\"a\":null}]"],
        "boolean" => &["1", "true", "yes", "on", "0", "false", "no", "off"],
        "HTTP status code" => &["200", "404"],
        "positive integer" => &["1", "100000"],
        "non-negative integer" => &["0", "100000"],
        "comma-separated enum" if name == "safe_methods" => &["GET", "GET,HEAD", "OPTIONS"],
        "comma-separated enum" => &["wpdb-queries"],
        "block slug" => &["core/paragraph"],
        words if words.contains('|') => return words.split('|').map(str::to_owned).collect(),
        words if words.contains(',') => {
            let all = words.split(',').chain([words]);
            return all.map(str::to_owned).collect();
        }
        _ => &["/a b", "http://localhost/?a=b#c", "name"],
    };
    samples.iter().map(|s| (*s).to_owned()).collect()
}

/// A site command is a command of the group state, discovery, observation or fuzz. The public command
/// list is `tests/conformance/public/commands.json`.
#[test]
fn site_commands_accept_sample_values_of_each_argument_in_the_public_command_list() {
    let public: serde_json::Value = serde_json::from_str(include_str!(
        "../../../../../tests/conformance/public/commands.json"
    ))
    .unwrap();
    let mut checked = 0;
    for row in public.as_array().unwrap() {
        let found = descriptor(row["id"].as_str().unwrap());
        let Some(found) = found.filter(|c| {
            matches!(
                c.group,
                CommandGroup::State
                    | CommandGroup::Discovery
                    | CommandGroup::Observation
                    | CommandGroup::Fuzz
            )
        }) else {
            continue;
        };
        for public in row["args"].as_array().unwrap() {
            let (id, name) = (found.id, public["name"].as_str().unwrap());
            let arg = found.accepted_args.iter().find(|a| a.name == name);
            let arg = arg.unwrap_or_else(|| panic!("{id} has no argument {name}"));
            assert!(!arg.required || public["required"] == true, "{id} {name}");
            for value in public_samples(name, public["format"].as_str().unwrap()) {
                assert_eq!(arg.format.check(&value), Ok(()), "{id} {name}={value}");
                checked += 1;
            }
        }
        if let Some(schema) = row["output"]["$id"].as_str() {
            assert_eq!(found.output_schema, Some(schema), "{}", found.id);
        }
    }
    assert!(checked > 150, "only {checked} values were checked");
}

#[test]
fn policy_must_list_every_command_that_a_command_requires() {
    let activate = call("wordpress.ensure-plugin-active", &["plugin=hello"]);
    let alone = defaults(vec![activate.command.clone()]);
    let error = assert_command(&alone, &activate).unwrap_err().body();
    assert_eq!(error.code, ErrorCode::CommandDisallowed);
    assert!(
        error.message.contains("wordpress.plugin-state"),
        "{}",
        error.message
    );
    let both = defaults(
        required_commands(&activate.command)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    );
    assert!(assert_command(&both, &activate).is_ok());
    assert_eq!(required_commands("no-such"), ["no-such"]);
}

#[test]
fn unsupported_command_ids_are_refused_with_the_reason_in_the_message() {
    let policy = everything();
    for (command, word) in [
        ("wp-codebox/run-fuzz-suite", "fuzz"),
        ("wp-codebox.agent-fanout", "agent-fanout"),
        ("wordpress.browser-actions.evaluate", "right"),
    ] {
        let error = assert_command(&policy, &call(command, &[]))
            .unwrap_err()
            .body();
        assert_eq!(error.code, ErrorCode::CommandUnsupported, "{command}");
        assert!(error.message.contains(word), "{}", error.message);
    }
}

#[test]
fn unknown_repeated_missing_and_malformed_command_arguments_are_refused() {
    let policy = everything();
    for (command, args, word) in [
        ("wordpress.wp-cli", vec![], "required"),
        ("wordpress.wp-cli", vec!["command= "], "required"),
        ("wordpress.run-php", vec!["cod=1"], "accepted are"),
        ("wordpress.run-php", vec!["code=1", "code=2"], "twice"),
        ("inspect-mounted-inputs", vec!["x"], "name=value"),
        ("inspect-mounted-inputs", vec!["x=1"], "takes none"),
        (
            "wordpress.rest-request",
            vec!["path=/wp/v2/posts", "params-json=[]"],
            "JSON object",
        ),
        (
            "wordpress.ensure-plugin-active",
            vec!["plugin=x", "network=maybe"],
            "yes, on",
        ),
        ("host/smtp.inspect", vec![], "required"),
        (
            "host/smtp.reset",
            vec!["service=mail", "limit=1"],
            "accepted are",
        ),
        (
            "host/smtp.inspect",
            vec!["service=mail", "recipient=a@x", "recipient-label=a\u{1b}b"],
            "letters",
        ),
    ] {
        let error = assert_command(&policy, &call(command, &args))
            .unwrap_err()
            .body();
        assert_eq!(error.code, ErrorCode::InputInvalid, "{command} {args:?}");
        assert!(error.message.contains(word), "{}", error.message);
    }
    let good = call("wordpress.run-php", &["code=a=b"]);
    assert_eq!(arg_value(&good, "code"), Some("a=b"));
    let repeated = call(
        "wordpress.browser-probe",
        &["url=/", "assert=exists:a", "assert=exists:b"],
    );
    assert!(assert_command(&policy, &repeated).is_ok());
    assert_eq!(arg_values(&repeated, "assert").count(), 2);
}

#[test]
fn blank_value_of_an_optional_argument_counts_as_not_given() {
    let policy = everything();
    for (command, args) in [
        (
            "wordpress.phpunit",
            ["discovery-only=", "changed-tests-json= "],
        ),
        (
            "wordpress.run-php",
            ["bootstrap=", "diagnostics-max-items="],
        ),
        ("wordpress.plugin-state", ["action=", "network="]),
        ("wordpress.ability", ["name=a/b", "input="]),
        ("wp-codebox.checkpoint-create", ["name=a", "metadata-json="]),
    ] {
        let checked = assert_command(&policy, &call(command, &args));
        assert!(checked.is_ok(), "{command}: {checked:?}");
    }
    let required = call("wordpress.ability", &["name="]);
    assert!(assert_command(&policy, &required).is_err());
}

#[test]
fn arguments_without_a_name_are_accepted_only_after_the_command_argument_of_wp_cli() {
    let policy = everything();
    for args in [
        &["command=option get", "home"][..],
        &["command=wp", "post", "create", "--post_title=a"],
    ] {
        assert!(assert_command(&policy, &call("wordpress.wp-cli", args)).is_ok());
    }
    for (command, args) in [
        ("wordpress.wp-cli", &["option", "command=get"][..]),
        ("wordpress.wp-cli", &["comand=get"]),
        ("wordpress.run-php", &["code=1;", "more"]),
    ] {
        assert!(
            assert_command(&policy, &call(command, args)).is_err(),
            "{args:?}"
        );
    }
}

#[test]
fn command_agent_run_needs_permission_for_the_command_that_it_executes() {
    let run = call(
        "command-agent-run",
        &[
            "command=wordpress.wp-cli",
            "args-json=[\"command=option list\", 1]",
        ],
    );
    assert_eq!(
        target_call(&run).unwrap().args,
        ["command=option list", "1"]
    );
    let alone = defaults(vec![run.command.clone()]);
    let error = assert_command(&alone, &run).unwrap_err().body();
    assert_eq!(error.code, ErrorCode::CommandDisallowed);
    let both = defaults(call_commands(&run));
    assert!(assert_command(&both, &run).is_ok());
    let program = call("command-agent-run", &["command=wp", "args-json=[]"]);
    assert_eq!(target_call(&program), None);
    assert!(assert_command(&alone, &program).is_ok());
    for args in [
        ["command=command-agent-run", "args-json=[]"],
        ["command=wordpress.wp-cli", "args-json=[]"],
        ["command=wordpress.browser-actions.evaluate", "args-json=[]"],
    ] {
        let error = assert_command(&everything(), &call("command-agent-run", &args));
        assert!(error.is_err(), "{args:?}");
    }
}

/// Every command has an id of its own, a description of itself and of each argument, and an output
/// shape, and requires only existing commands.
#[test]
fn every_command_in_the_registry_is_documented_and_requires_only_existing_commands() {
    let mut ids = BTreeSet::new();
    for row in registry() {
        let id = row.id;
        assert!(ids.insert(id), "{id} is there twice");
        let sentence = |text: &str| text.ends_with('.') && text.len() > 8 && text.len() < 300;
        assert!(sentence(row.description), "{id}: {}", row.description);
        assert!(!row.output_shape.is_empty(), "{id}");
        if let Some(schema) = row.output_schema {
            assert!(
                schema.starts_with("wp-codebox/") && schema.ends_with("/v1"),
                "{id}: {schema}"
            );
        }
        let mut names = BTreeSet::new();
        for arg in row.accepted_args {
            assert!(names.insert(arg.name), "{id}: {} is there twice", arg.name);
            assert!(!arg.name.contains('='), "{id}: {}", arg.name);
            assert!(sentence(arg.description), "{id} {}", arg.name);
        }
        for required in row.requires {
            let found = descriptor(required);
            assert!(
                found.is_some(),
                "{id} needs {required}, which is not a command"
            );
        }
        match row.handler {
            Handler::Program(GuestProgram::File(file)) => {
                assert!(
                    file.ends_with(".php") && !file.contains('/'),
                    "{id}: {file}"
                );
            }
            Handler::Right { of } => assert!(descriptor(of).is_some(), "{id}"),
            Handler::Unsupported { reason } => assert!(sentence(&format!("{reason}.")), "{id}"),
            Handler::Program(GuestProgram::Direct)
            | Handler::Browser
            | Handler::Checkpoint
            | Handler::Mail(_)
            | Handler::Agent => {}
        }
    }
}

#[test]
fn command_catalogue_has_every_command_with_its_arguments_and_policy_requirement() {
    let catalogue = catalog();
    let rows = catalogue["commands"].as_array().unwrap();
    assert_eq!(rows.len(), registry().count());
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap();
    let probe = row("wordpress.browser-probe");
    let args = probe["acceptedArgs"].as_array().unwrap();
    let assert = args.iter().find(|a| a["name"] == "assert").unwrap();
    assert_eq!(assert["repeatable"], true);
    assert_eq!(assert.get("required"), None);
    assert_eq!(row("wordpress.browser-actions.evaluate")["recipe"], false);
    assert_eq!(row("wp-codebox/run-fuzz-suite")["supported"], false);
    assert_eq!(
        row("wordpress.ensure-plugin-active")["policyRequirement"],
        "Runtime policy commands must include wordpress.ensure-plugin-active, and wordpress.plugin-state"
    );
}

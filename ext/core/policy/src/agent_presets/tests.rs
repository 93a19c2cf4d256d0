use super::*;
use crate::Redactor;
use serde_json::json;
use wp_codebox_contracts::ErrorCode;

fn model(api: &str, name: &str) -> ModelEndpoint {
    serde_json::from_value(json!({
        "provider": "acme", "model": name, "api": api, "base_url": "https://api.example.net/v1",
    }))
    .unwrap()
}

fn document() -> Value {
    json!({
        "schema": "wp-codebox/agent-preset/v1", "name": "example", "title": "Example",
        "about": "x", "license": "MIT", "homepage": "https://example.org", "install": "x",
        "apis": ["openai-chat"], "program": "bin/agent",
        "argv": ["--model", "x/{model}", "--message={goal}", "{{literal}}"], "goal": "argument",
        "env": {"OPENAI_API_KEY": "{key}", "OPENAI_BASE_URL": "{base_url}"},
        "files": {"a.json": {"{provider}": ["{model}", 1, true, null]}},
        "network": ["model"],
        "result": {"format": "stdout"},
    })
}

fn parsed(document: &Value) -> Result<AgentPreset, PresetError> {
    parse_preset("example", document.to_string().as_bytes())
}

fn resolved(goal: &str, model: &ModelEndpoint) -> Result<ResolvedPreset, PresetError> {
    resolve_preset(
        &parsed(&document()).unwrap(),
        PresetContext {
            goal,
            model,
            base_url: "http://127.0.0.1:3128/model",
            key: "placeholder",
            workspace: "/workspace/x",
            home: "/home/agent",
            files: "/run/codebox/staged/.agent",
            directory: "/opt/agents/example",
        },
    )
}

#[test]
fn goal_with_quotes_and_placeholders_stays_one_argument() {
    let goal = "{key} $(id) `id` \"'; {{ --yes\n{goal}";
    let found = resolved(goal, &model("openai-chat", "gpt \"{key}\"")).unwrap();
    assert_eq!(
        found.command.argv,
        [
            "/opt/agents/example/bin/agent",
            "--model",
            "x/gpt \"{key}\"",
            &format!("--message={goal}"),
            "{literal}",
        ]
    );
    assert_eq!(found.command.env["OPENAI_API_KEY"], "placeholder");
    assert_eq!(found.command.preset.as_deref(), Some("example"));
    assert!(found.stdin.is_empty());
    let file: Value = serde_json::from_slice(&found.files["a.json"]).unwrap();
    assert_eq!(file, json!({"acme": ["gpt \"{key}\"", 1, true, null]}));
}

#[test]
fn goal_is_written_to_standard_input_if_the_preset_has_goal_stdin() {
    let mut document = document();
    document["goal"] = json!("stdin");
    assert!(parsed(&document).is_err(), "argv still has the goal");
    document["argv"] = json!(["-"]);
    let preset = parsed(&document).unwrap();
    let model = model("openai-chat", "m");
    let context = PresetContext {
        goal: "do it",
        model: &model,
        base_url: "",
        key: "",
        workspace: "",
        home: "",
        files: "",
        directory: "/opt/agents/example",
    };
    assert_eq!(resolve_preset(&preset, context).unwrap().stdin, b"do it");
}

#[test]
fn preset_file_with_one_invalid_member_is_refused() {
    parsed(&document()).unwrap();
    for (pointer, value) in [
        ("/schema", json!("wp-codebox/agent-preset/v2")),
        ("/name", json!("other")),
        ("/program", json!("../bin/agent")),
        ("/program", json!("/bin/sh")),
        ("/program", json!("")),
        ("/apis", json!([])),
        ("/apis", json!(["telepathy"])),
        ("/success_codes", json!([])),
        ("/argv", json!(["no goal"])),
        ("/argv", json!(["{goal}", "{goal}"])),
        ("/argv", json!(["{goal}", "{secret}"])),
        ("/argv", json!(["{goal}", "{model"])),
        ("/argv", json!(["{goal}", "}"])),
        ("/env", json!({"lower": "x"})),
        ("/env", json!({"X": "{goal}"})),
        ("/files", json!({"../x": {}})),
        ("/files", json!({"a/b": {}})),
        ("/files", json!({"a": "{goal}"})),
        ("/shell", json!("bash")),
        ("/steps", json!([{"when": {}, "line": "x"}])),
        ("/steps", json!([{"when": {"a": ["x"]}, "line": "x"}])),
        ("/steps", json!([{"when": {"a": null}, "line": "x"}])),
        ("/steps", json!([{"when": {"a..b": "x"}, "line": "x"}])),
        ("/steps", json!([{"when": {"a": "x"}, "line": "{}"}])),
        ("/steps", json!([{"when": {"a": "x"}, "line": "{a"}])),
        ("/steps", json!([{"when": {"a": "x"}, "line": "a}"}])),
        ("/steps", json!([{"when": {"a": "x"}, "line": "{a:html}"}])),
        (
            "/steps",
            json!([{"when": {"a": "x"}, "each": "", "line": "x"}]),
        ),
        (
            "/steps",
            json!([{"when": {"a": "x"}, "line": "x", "colour": "red"}]),
        ),
        (
            "/steps",
            json!(vec![json!({"when": {"a": "x"}, "line": "x"}); 65]),
        ),
    ] {
        let mut document = document();
        match document.pointer_mut(pointer) {
            Some(member) => *member = value.clone(),
            None => document[&pointer[1..]] = value.clone(),
        }
        let error = parsed(&document).unwrap_err();
        assert_eq!(
            error.body().code,
            ErrorCode::ConfigInvalid,
            "{pointer} {value}"
        );
    }
    for name in ["", "A", "a/b", "..", "-x", "a b", &"x".repeat(41)] {
        assert_eq!(check_preset_name(name), Err(PresetError::Name), "{name}");
    }
}

#[test]
fn agent_preset_refuses_an_unsupported_model_api_and_a_goal_too_long_for_an_argument() {
    let error = resolved("x", &model("anthropic-messages", "m")).unwrap_err();
    assert_eq!(error.body().code, ErrorCode::ModelInvalid);
    let long = "x".repeat(MAX_ARGUMENT + 1);
    let error = resolved(&long, &model("openai-chat", "m")).unwrap_err();
    assert_eq!(error.body().code, ErrorCode::InputInvalid);
    resolved(&long[1..], &model("openai-chat", "m")).unwrap();
}

#[test]
fn final_message_is_the_last_matching_json_line_or_the_trimmed_end_of_stdout_as_the_preset_says() {
    let lines = PresetResult::JsonLines {
        when: BTreeMap::from([("item.type".to_owned(), "message".to_owned())]),
        text: "item.text".to_owned(),
    };
    let printed = "no json\n{\"item\":{\"type\":\"message\",\"text\":\"first\"}}\n\
        {\"item\":{\"type\":\"message\",\"text\":\"last\"}}\n{\"item\":{\"type\":\"other\",\"text\":\"x\"}}\n";
    assert_eq!(final_message(&lines, printed).as_deref(), Some("last"));
    assert_eq!(final_message(&lines, "nothing"), None);
    assert_eq!(
        final_message(&PresetResult::Stdout, " a\n"),
        Some("a".to_owned())
    );
    assert_eq!(final_message(&PresetResult::Stdout, "\n"), None);
    let long = format!("é{}", "x".repeat(MAX_RESULT - 1));
    assert_eq!(
        final_message(&PresetResult::Stdout, &long).unwrap().len(),
        MAX_RESULT - 1
    );
}

#[test]
fn shipped_presets_are_valid_and_every_placeholder_is_replaced() {
    let directory = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../share/agents");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let preset = parse_preset(&name, &std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(preset.network, ["model"], "{name}");
        let api = api_name(preset.apis[0]);
        let model = model(api, "a-model");
        let goal = "a goal with {key} and spaces";
        let found = resolve_preset(
            &preset,
            PresetContext {
                goal,
                model: &model,
                base_url: "http://127.0.0.1:3128/model",
                key: "placeholder",
                workspace: "/workspace/x",
                home: "/home/agent",
                files: "/run/codebox/staged/.agent",
                directory: "/opt/agents/x",
            },
        )
        .unwrap();
        let files = found
            .files
            .values()
            .map(|file| String::from_utf8_lossy(file));
        let said = format!("{:?} {}", found.command, files.collect::<String>());
        assert!(said.contains("http://127.0.0.1:3128/model"), "{said}");
        assert!(
            said.contains("placeholder") && said.contains("a-model"),
            "{said}"
        );
        assert!(preset.install.contains("{directory}"), "{name}");
        let told = found.command.argv.iter().any(|text| text.contains(goal));
        assert!(told || found.stdin == goal.as_bytes(), "{said}");
        names.push(name);
    }
    names.sort();
    assert_eq!(
        names,
        ["aider", "claude", "codex", "mini-swe-agent", "opencode"]
    );
}

fn read_shipped(name: &str) -> AgentPreset {
    let directory = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../share/agents");
    let bytes = std::fs::read(directory.join(format!("{name}.json"))).unwrap();
    parse_preset(name, &bytes).unwrap()
}

/// One example line of each kind that the agents print, and the expected text.
#[test]
fn json_lines_of_each_agent_preset_are_displayed_as_its_step_rules_say() {
    let codex = [
        (
            json!({"type": "thread.started", "thread_id": "t1"}),
            Some(""),
        ),
        (
            json!({"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "ls -l", "aggregated_output": "", "exit_code": null, "status": "in_progress"}}),
            Some("$ ls -l"),
        ),
        (
            json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "ls -l", "aggregated_output": "a\nb\n", "exit_code": 0, "status": "completed"}}),
            Some("[exit status 0] a b"),
        ),
        (
            json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "ls -l", "aggregated_output": "a\nb\n", "exit_code": 2, "status": "failed"}}),
            Some("[exit status 2] a\nb"),
        ),
        (
            json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "ls -l", "aggregated_output": "no", "exit_code": null, "status": "declined"}}),
            Some("[declined] no"),
        ),
        (
            json!({"type": "item.completed", "item": {"id": "2", "type": "file_change", "changes": [{"kind": "update", "path": "a.php"}], "status": "completed"}}),
            Some("[files completed] [{\"kind\":\"update\",\"path\":\"a.php\"}]"),
        ),
        (
            json!({"type": "item.completed", "item": {"id": "3", "type": "agent_message", "text": "One.\n\nTwo."}}),
            Some("One.\n\nTwo."),
        ),
        (
            json!({"type": "turn.failed", "error": {"message": "quota"}}),
            Some("[failed: quota]"),
        ),
        (
            json!({"type": "turn.completed", "usage": {"input_tokens": 7, "cached_input_tokens": 0, "output_tokens": 3}}),
            Some("[done: 7 tokens in, 3 out]"),
        ),
        (
            json!({"type": "item.completed", "item": {"type": "telepathy"}}),
            None,
        ),
        (json!({"type": "turn.failed"}), None),
    ];
    let opencode = [
        (
            json!({"type": "step_start", "sessionID": "s", "part": {"type": "step-start"}}),
            Some(""),
        ),
        (
            json!({"type": "tool_use", "part": {"type": "tool", "tool": "bash", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a"}}}),
            Some("$ ls\na"),
        ),
        (
            json!({"type": "tool_use", "part": {"type": "tool", "tool": "edit", "state": {"status": "error", "input": {"filePath": "a"}, "error": "no match"}}}),
            Some("[edit failed: no match] {\"filePath\":\"a\"}"),
        ),
        (
            json!({"type": "text", "part": {"type": "text", "text": "Done."}}),
            Some("Done."),
        ),
        (
            json!({"type": "error", "error": {"name": "APIError", "data": {"message": "no"}}}),
            Some("[error: no]"),
        ),
        (
            json!({"type": "error", "error": {"name": "Odd"}}),
            Some("[error: Odd]"),
        ),
    ];
    let claude = [
        (
            json!({"type": "assistant", "message": {"content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
                {"type": "tool_use", "name": "Read", "input": {"file_path": "a"}},
                {"type": "other", "x": 1},
            ]}}),
            Some("I look.\n$ ls\n[Read] {\"file_path\":\"a\"}\n{\"type\":\"other\",\"x\":1}"),
        ),
        (
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": "no file", "is_error": true}]}}),
            Some("[failed: no file]"),
        ),
        (
            json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done.", "num_turns": 2, "duration_ms": 10}),
            Some("[done: 2 turns, 10 ms]"),
        ),
        (
            json!({"type": "result", "subtype": "error_max_turns", "is_error": true}),
            Some("[failed, error_max_turns]"),
        ),
        (
            json!({"type": "assistant", "message": {"content": []}}),
            None,
        ),
        (
            json!({"type": "assistant", "message": {"content": "text"}}),
            None,
        ),
        (json!({"type": "system", "subtype": "news"}), Some("[news]")),
        (json!({"type": "news"}), None),
    ];
    let redactor = Redactor::new(&[]);
    let many = vec![json!({"type": "text", "text": "x"}); 1000];
    let many = json!({"type": "assistant", "message": {"content": many}});
    let shown = step_text(
        &read_shipped("claude").steps,
        many.to_string().as_bytes(),
        &redactor,
    );
    assert_eq!(shown.unwrap(), "x\n".repeat(64) + "… (936 entries more)");
    // A secret with JSON escapes, and a secret that the cut at 200 characters would split.
    let secret = "correct-horse-battery";
    let cleaning = Redactor::with_secrets(&[], [secret]);
    for begin in ["", &"y".repeat(190)] {
        let line = json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": format!("{begin}{secret}")}}]}});
        let line = line.to_string().replace("horse", "\\u0068orse");
        let shown = step_text(&read_shipped("claude").steps, line.as_bytes(), &cleaning).unwrap();
        assert!(shown.starts_with("$ ") && shown.contains(begin));
        assert!(
            !shown.contains("correct-h") && !shown.contains("corr"),
            "{shown}"
        );
    }
    for (name, rows) in [
        ("codex", &codex[..]),
        ("opencode", &opencode[..]),
        ("claude", &claude[..]),
    ] {
        let steps = read_shipped(name).steps;
        for (row, wanted) in rows {
            let shown = step_text(&steps, row.to_string().as_bytes(), &redactor);
            assert_eq!(shown.as_deref(), *wanted, "{name} {row}");
        }
        for plain in ["", "words", "[]", "{", "{\"type\":", "\u{1b}[2J"] {
            assert_eq!(
                step_text(&steps, plain.as_bytes(), &redactor),
                None,
                "{name}"
            );
        }
    }
}

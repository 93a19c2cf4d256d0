//! The built-in tools as data: their descriptions for the model, and what each needs from the
//! runtime policy.

use serde_json::{Value, json};

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuiltinTool {
    /// `workspace.read`
    Read,
    /// `workspace.list`
    List,
    /// `workspace.search`
    Search,
    /// `workspace.write`
    Write,
    /// `workspace.edit`
    Edit,
    /// `workspace.patch`
    Patch,
    /// `workspace.delete`
    Delete,
    /// `workspace.diff`
    Diff,
    /// `terminal.run`
    Terminal,
    /// `run_terminal_command`
    Program,
    /// `wordpress.run-php`
    RunPhp,
    /// `wordpress.wp-cli`
    WpCli,
    /// `wordpress.ability`
    Ability,
    /// `wordpress.http-request`
    HttpRequest,
    /// `tests.run`
    Tests,
    /// `task.finish`
    Finish,
    /// `task.blocked`
    Blocked,
}

/// Part of the runtime policy that a tool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNeed {
    /// Nothing: the tool reads mounts, or has no effect.
    Nothing,
    /// Writable mounts.
    WritableMounts,
    /// This id in the policy's `commands`.
    Command(&'static str),
}

/// Whether a tool can change something in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAccess {
    /// The tool only reads.
    Reads,
    /// The tool can change files, WordPress, or anything that a program can change.
    Writes,
    /// The tool ends the task and has no other effect.
    EndsTask,
}

/// Name, description and needs of one built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolDescriptor {
    /// The tool that the row describes.
    pub tool: BuiltinTool,
    /// Stable id of the tool in policies and lists, e.g. `workspace.read`.
    pub id: &'static str,
    /// Alternative names of the tool in policies, lists and calls.
    pub aliases: &'static [&'static str],
    /// Description of the tool for the model.
    pub description: &'static str,
    /// Part of the runtime policy that the tool needs.
    pub need: ToolNeed,
    /// Whether the tool can change something in the guest.
    pub access: ToolAccess,
    /// Returns the JSON Schema of the arguments; its type is `object`.
    pub parameters: fn() -> Value,
}

const PHP: ToolNeed = ToolNeed::Command("wordpress.run-php");
const PROGRAM: ToolNeed = ToolNeed::Command("command-agent-run");

/// Name of the tool that runs one program. It exists for agents whose host uses this name. An
/// agent has it only if its tool policy or its list of allowed tools names it, because
/// `terminal.run` does the same and more.
pub const RUN_TERMINAL_COMMAND: &str = "run_terminal_command";

/// Returns the definition of [`RUN_TERMINAL_COMMAND`] that the host of an agent passes to a model:
/// {name, description, parameters}.
#[must_use]
pub fn run_terminal_command() -> Value {
    let row = TOOLS.iter().find(|row| row.tool == BuiltinTool::Program);
    json!({
        "name": RUN_TERMINAL_COMMAND,
        "description": row.map(|row| row.description),
        "parameters": program(),
    })
}

/// Every built-in tool, in the order in which models see them.
pub const TOOLS: &[ToolDescriptor] = &[
    ToolDescriptor {
        tool: BuiltinTool::Read,
        id: "workspace.read",
        aliases: &["workspace-read", "read_file"],
        description: "Reads a text file by line range. Lines are numbered `N|text`; the numbers are not part of the file. Long files come in pages: the answer says which start_line comes next. A binary file is only described; encoding base64 reads its bytes by offset and length.",
        need: ToolNeed::Nothing,
        access: ToolAccess::Reads,
        parameters: read,
    },
    ToolDescriptor {
        tool: BuiltinTool::List,
        id: "workspace.list",
        aliases: &["workspace.ls", "workspace_ls", "workspace-ls", "list_files"],
        description: "Lists files and directories below a path, sorted, directories with a slash at the end. Long lists come in pages: the answer says which offset comes next.",
        need: ToolNeed::Nothing,
        access: ToolAccess::Reads,
        parameters: list,
    },
    ToolDescriptor {
        tool: BuiltinTool::Search,
        id: "workspace.search",
        aliases: &[
            "workspace.grep",
            "workspace_grep",
            "workspace-grep",
            "search_files",
        ],
        description: "Searches text files below a path for a literal text, or for a PCRE pattern with regex true. Answers `path:line|text`. Binary files are left out.",
        need: ToolNeed::Nothing,
        access: ToolAccess::Reads,
        parameters: search,
    },
    ToolDescriptor {
        tool: BuiltinTool::Write,
        id: "workspace.write",
        aliases: &["workspace-write", "write_file"],
        description: "Writes a whole file; missing directories are made, an existing file is replaced and keeps its mode. For a change of an existing file prefer workspace.edit.",
        need: ToolNeed::WritableMounts,
        access: ToolAccess::Writes,
        parameters: write,
    },
    ToolDescriptor {
        tool: BuiltinTool::Edit,
        id: "workspace.edit",
        aliases: &["workspace-edit", "edit_file"],
        description: "Replaces old_text by new_text in a text file. old_text must be in the file exactly once, whitespace included: give enough lines around the change. replace_all replaces every place.",
        need: ToolNeed::WritableMounts,
        access: ToolAccess::Writes,
        parameters: edit,
    },
    ToolDescriptor {
        tool: BuiltinTool::Patch,
        id: "workspace.patch",
        aliases: &[
            "workspace.apply-patch",
            "workspace_apply_patch",
            "workspace-apply-patch",
            "apply_patch",
        ],
        description: "Applies a patch to one or more files: a unified diff (plain or git), or the `*** Begin Patch` form. All files or none: when one hunk does not fit, nothing is changed and the answer says which.",
        need: ToolNeed::WritableMounts,
        access: ToolAccess::Writes,
        parameters: patch,
    },
    ToolDescriptor {
        tool: BuiltinTool::Delete,
        id: "workspace.delete",
        aliases: &["workspace-delete", "delete_file"],
        description: "Deletes a file, a link or an empty directory; with recursive true a directory with everything in it.",
        need: ToolNeed::WritableMounts,
        access: ToolAccess::Writes,
        parameters: delete,
    },
    ToolDescriptor {
        tool: BuiltinTool::Diff,
        id: "workspace.diff",
        aliases: &[
            "workspace_git_diff",
            "workspace-git-diff",
            "workspace_git_status",
            "workspace-git-status",
        ],
        description: "Shows everything that has changed in the mounts since the run began, whoever changed it, as a git patch. stat true shows only the files.",
        need: ToolNeed::Nothing,
        access: ToolAccess::Reads,
        parameters: diff,
    },
    ToolDescriptor {
        tool: BuiltinTool::Terminal,
        id: "terminal.run",
        aliases: &["terminal", "shell", "run_command"],
        description: "Runs a command line with /bin/sh in the sandbox and answers exit code, stdout and stderr. No terminal, no standard input. It is ended at its timeout; the sandbox lives on.",
        need: PROGRAM,
        access: ToolAccess::Writes,
        parameters: terminal,
    },
    ToolDescriptor {
        tool: BuiltinTool::Program,
        id: RUN_TERMINAL_COMMAND,
        aliases: &["terminal.command"],
        description: "Runs a program with its arguments in the sandbox, without a shell, and answers exit code, stdout and stderr. No terminal, no standard input. It is ended after two minutes; the sandbox lives on.",
        need: PROGRAM,
        access: ToolAccess::Writes,
        parameters: program,
    },
    ToolDescriptor {
        tool: BuiltinTool::RunPhp,
        id: "wordpress.run-php",
        aliases: &["run_php"],
        description: "Runs PHP code in the sandbox with its WordPress loaded, without a current user unless the code sets one. Answers what it prints.",
        need: PHP,
        access: ToolAccess::Writes,
        parameters: run_php,
    },
    ToolDescriptor {
        tool: BuiltinTool::WpCli,
        id: "wordpress.wp-cli",
        aliases: &["wp_cli", "wp"],
        description: "Runs WP-CLI on the sandbox's WordPress, e.g. `plugin list --format=json`. The line is split like a shell would, but runs without one.",
        need: ToolNeed::Command("wordpress.wp-cli"),
        access: ToolAccess::Writes,
        parameters: wp_cli,
    },
    ToolDescriptor {
        tool: BuiltinTool::Ability,
        id: "wordpress.ability",
        aliases: &["run_ability"],
        description: "Executes an ability of the sandbox's WordPress as its administrator and answers the result as JSON.",
        need: PHP,
        access: ToolAccess::Writes,
        parameters: ability,
    },
    ToolDescriptor {
        tool: BuiltinTool::HttpRequest,
        id: "wordpress.http-request",
        aliases: &["http_request"],
        description: "Asks the sandbox's own WordPress, without a network: paths below /wp-json/ are dispatched to its REST API, any other path is rendered as a front-end page. Other hosts, files below /wp-admin/ and static files are not served.",
        need: PHP,
        access: ToolAccess::Writes,
        parameters: http_request,
    },
    ToolDescriptor {
        tool: BuiltinTool::Tests,
        id: "tests.run",
        aliases: &["run_tests"],
        description: "Runs the task's checks, or the given test command, in this sandbox. The result counts for you only: after the work the checks run again in a fresh sandbox, and that decides.",
        need: PROGRAM,
        access: ToolAccess::Writes,
        parameters: tests,
    },
    ToolDescriptor {
        tool: BuiltinTool::Finish,
        id: "task.finish",
        aliases: &["finish", "task_complete"],
        description: "Ends the task: the work is done. Say what was changed and why, for a human who reviews it.",
        need: ToolNeed::Nothing,
        access: ToolAccess::EndsTask,
        parameters: finish,
    },
    ToolDescriptor {
        tool: BuiltinTool::Blocked,
        id: "task.blocked",
        aliases: &["blocked"],
        description: "Ends the task: it cannot be done. Say what is in the way and what would help.",
        need: ToolNeed::Nothing,
        access: ToolAccess::EndsTask,
        parameters: blocked,
    },
];

/// Returns the built-in tool with this id, name in the model's API, or alias.
#[must_use]
pub fn builtin_tool(name: &str) -> Option<&'static ToolDescriptor> {
    TOOLS.iter().find(|row| {
        row.id == name || runtime_tool_id(row.id) == name || row.aliases.contains(&name)
    })
}

/// Converts a tool id to the form that model APIs accept: each run of characters other than
/// letters, digits and `_` becomes one `_`, and leading and trailing `_` are removed.
#[must_use]
pub fn runtime_tool_id(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for c in id.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    name.trim_matches('_').to_owned()
}

const PATH: &str = "Relative to the working directory, or absolute below a mount.";

fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn number(minimum: u64, maximum: u64, description: &str) -> Value {
    json!({"type": "integer", "minimum": minimum, "maximum": maximum, "description": description})
}

fn timeout(default: &str) -> Value {
    number(
        1,
        1800,
        &format!("Time limit in seconds; default {default}."),
    )
}

fn read() -> Value {
    object(
        json!({
            "path": text(PATH),
            "start_line": number(1, 100_000_000, "First line; default 1."),
            "lines": number(1, 2000, "Most lines; default 400."),
            "encoding": {"type": "string", "enum": ["text", "base64"], "description": "Default text."},
            "offset": number(0, 1 << 40, "With base64: first byte; default 0."),
            "length": number(1, 24 * 1024, "With base64: most bytes; default 12288."),
        }),
        &["path"],
    )
}

fn list() -> Value {
    object(
        json!({
            "path": text("Directory; default the working directory."),
            "depth": number(1, 16, "Levels below it; default 2."),
            "limit": number(1, 1000, "Most entries; default 300."),
            "offset": number(0, 10_000_000, "Entries to pass over, for the next page."),
        }),
        &[],
    )
}

fn search() -> Value {
    object(
        json!({
            "pattern": text("What to look for."),
            "regex": flag("Whether the pattern is a regular expression (PCRE, without delimiters); default false."),
            "ignore_case": flag("Default false."),
            "path": text("File or directory; default the working directory."),
            "glob": text("Only files whose path below `path`, or whose name, matches, e.g. `*.php` or `src/**/*.js`."),
            "context": number(0, 5, "Lines shown around each hit; default 0."),
            "limit": number(1, 500, "Most hits; default 100."),
            "offset": number(0, 10_000_000, "Hits to pass over, for the next page."),
        }),
        &["pattern"],
    )
}

fn write() -> Value {
    object(
        json!({
            "path": text(PATH),
            "content": text("The whole content."),
            "encoding": {"type": "string", "enum": ["text", "base64"], "description": "What content is; base64 for bytes that are not text. Default text."},
        }),
        &["path", "content"],
    )
}

fn edit() -> Value {
    object(
        json!({
            "path": text(PATH),
            "old_text": text("Text that is there now, exactly."),
            "new_text": text("Text to be there instead; empty deletes."),
            "replace_all": flag("Replace every place; default false."),
        }),
        &["path", "old_text", "new_text"],
    )
}

fn patch() -> Value {
    object(
        json!({"patch": text("The patch. Paths are relative to the working directory, or absolute below a mount.")}),
        &["patch"],
    )
}

fn delete() -> Value {
    object(
        json!({
            "path": text(PATH),
            "recursive": flag("Delete a directory with everything in it; default false."),
        }),
        &["path"],
    )
}

fn diff() -> Value {
    object(
        json!({
            "path": text("Only what is at or below this path."),
            "stat": flag("Only names and numbers; default false."),
            "offset": number(0, 1 << 40, "Bytes of the answer to pass over, for the next page."),
        }),
        &[],
    )
}

fn terminal() -> Value {
    object(
        json!({
            "command": text("The command line."),
            "cwd": text("Where it runs; default the working directory."),
            "timeout_seconds": timeout("120"),
        }),
        &["command"],
    )
}

fn program() -> Value {
    object(
        json!({
            "command": text("The program: a name or a path."),
            "args": {"type": "array", "items": {"type": "string"}, "description": "Its arguments, each as it is; default none."},
        }),
        &["command"],
    )
}

fn run_php() -> Value {
    object(
        json!({
            "code": text("PHP without an opening tag, at most 1 MiB."),
            "timeout_seconds": timeout("120"),
        }),
        &["code"],
    )
}

fn wp_cli() -> Value {
    object(
        json!({
            "command": text("The line without the leading `wp`."),
            "timeout_seconds": timeout("120"),
        }),
        &["command"],
    )
}

fn ability() -> Value {
    object(
        json!({
            "name": text("Its name, `namespace/name`."),
            "input": {"type": "object", "description": "Its input; absent: none is given."},
            "timeout_seconds": timeout("120"),
        }),
        &["name"],
    )
}

fn http_request() -> Value {
    object(
        json!({
            "method": {"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"], "description": "Default GET."},
            "path": text("Path with query, e.g. `/wp-json/wp/v2/posts?per_page=1` or `/`."),
            "headers": {"type": "object", "description": "Request headers, name to text."},
            "body": text("Request body. Give a content-type header with it."),
            "user_id": number(0, 1 << 40, "The user it is asked as; default 0, a visitor; 1 is the administrator."),
            "timeout_seconds": timeout("60"),
        }),
        &["path"],
    )
}

fn tests() -> Value {
    object(
        json!({
            "command": text("A test command line; absent: the task's checks."),
            "timeout_seconds": timeout("600, for each"),
        }),
        &[],
    )
}

fn finish() -> Value {
    object(
        json!({"summary": text("What was done, in a few sentences.")}),
        &["summary"],
    )
}

fn blocked() -> Value {
    object(
        json!({"reason": text("What is in the way, in a few sentences.")}),
        &["reason"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_tool_name_refers_to_one_tool() {
        let mut names = BTreeSet::new();
        for row in TOOLS {
            assert!(names.insert(row.id.to_owned()), "{}", row.id);
            let wire = runtime_tool_id(row.id);
            assert!(wire == row.id || names.insert(wire), "{}", row.id);
            for alias in row.aliases {
                assert!(names.insert((*alias).to_owned()), "{alias}");
            }
            for name in std::iter::once(&row.id).chain(row.aliases) {
                assert_eq!(builtin_tool(name).unwrap().id, row.id);
            }
        }
        assert!(builtin_tool("workspace").is_none());
        assert!(builtin_tool("").is_none());
    }

    #[test]
    fn tool_names_for_the_model_have_at_most_64_letters_digits_and_underscores() {
        for row in TOOLS {
            let name = runtime_tool_id(row.id);
            assert!((1..=64).contains(&name.len()));
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        }
        assert_eq!(runtime_tool_id("wordpress.run-php"), "wordpress_run_php");
        assert_eq!(runtime_tool_id(" a--b "), "a_b");
        assert_eq!(runtime_tool_id("é"), "");
    }

    #[test]
    fn tool_parameter_schemas_refuse_unknown_members_and_define_required_ones() {
        for row in TOOLS {
            let schema = (row.parameters)();
            assert_eq!(schema["type"], "object", "{}", row.id);
            assert_eq!(schema["additionalProperties"], false, "{}", row.id);
            let properties = schema["properties"].as_object().unwrap();
            for name in schema["required"].as_array().unwrap() {
                assert!(properties.contains_key(name.as_str().unwrap()));
            }
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{} {name}", row.id);
            }
        }
    }

    #[test]
    fn run_terminal_command_takes_a_command_and_a_list_of_arguments() {
        let definition = run_terminal_command();
        assert_eq!(definition["name"], "run_terminal_command");
        assert_eq!(runtime_tool_id(RUN_TERMINAL_COMMAND), RUN_TERMINAL_COMMAND);
        let properties = &definition["parameters"]["properties"];
        assert_eq!(properties["command"]["type"], "string");
        assert_eq!(properties["args"]["items"]["type"], "string");
    }

    #[test]
    fn commands_required_by_tools_are_in_the_registry() {
        for row in TOOLS {
            if let ToolNeed::Command(id) = row.need {
                assert!(crate::descriptor(id).is_some(), "{id}");
            }
        }
    }
}

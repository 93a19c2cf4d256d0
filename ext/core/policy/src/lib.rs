//! Access rules of a run: the runtime policy, the command registry, mount and network rules,
//! secrets and redaction, tools.
//!
//! All functions are pure: equal input gives equal output, and nothing accesses the disk, the
//! environment or the clock. Callers resolve directories to canonical paths before they pass them.
#![forbid(unsafe_code)]

mod agent_presets;
mod command_line;
mod commands;
mod components;
mod denied_hosts;
mod env_name;
mod groups;
mod isolation;
mod model;
mod mounts;
mod network;
mod redaction;
mod runtime_policy;
mod secret_encodings;
mod secrets;
mod services;
mod task;
mod tools;

pub use agent_presets::{
    MAX_PRESETS, PRESET_BYTES, PresetContext, PresetError, ResolvedPreset, check_preset_name,
    final_message, parse_preset, resolve_preset, step_text,
};
pub use command_line::{CommandLineError, HostPrograms, command_words, shell_hint};
pub use commands::{
    AcceptedArg, CommandDescriptor, CommandError, CommandGroup, Format, GuestProgram, Handler,
    MailOperation, StepIssue, arg_value, arg_values, assert_command, assert_step, browser_duration,
    call_commands, catalog, catalog_entry, check_browser_scenario, check_browser_steps,
    check_editor_steps, command_line, descriptor, is_blank_option, is_true, line_words, list_words,
    named_file, registry, required_commands, runs_block_editor, target_call,
};
pub use components::{
    ComponentError, GUEST_MU_COMPONENTS, MAX_AGENT_BUNDLES, MAX_COMPONENTS, apart_from_components,
    check_agent_bundles, check_components, check_runtime_task,
};
pub use denied_hosts::DeniedHosts;
pub use env_name::{EnvNameError, check_env_name};
pub use groups::{
    Batch, Fanout, FanoutPolicy, GroupStatus, MAX_FANOUT_CONCURRENCY, TouchedFiles, cancelled_row,
    failed_row, invalid_task, row_status, touched_files,
};
pub use model::{
    AddressRefusal, BaseUrlError, ModelBase, ModelError, Reach, check_budget, check_model,
    check_model_agent,
};
pub use mounts::{
    GUEST_STAGED_ROOT, MountAuthority, MountError, check_mounts, check_source, check_staged_source,
    check_staged_target, check_state_location,
};
pub use network::{
    Allowed, Ambiguity, Authority, EgressRequest, EgressRules, Forbidden, Host, HostError,
    ModelAccess, PathError, Refusal, RequestPath, RuleScope, SecretScope, Transport, check_address,
    check_model_request, host_presets, is_method, split_port,
};
pub use redaction::{Finding, Redactor};
pub use runtime_policy::{PolicyError, defaults, parse, validate};
pub use secret_encodings::{EncodedMatch, EncodingSearch, SECRET_MIN_BYTES, SecretEncodings};
pub use secrets::{
    SecretError, SecretUse, broken_secret_rule, check_secret_name, check_secrets, is_exposed,
};
pub use services::{
    ServiceIssue, ServiceRule, check_mail_service, check_services, service_outputs,
};
pub use task::{CheckedBy, FOLLOW_UP_CONTEXT, check_request, normalise_task, read_task};
pub use tools::{
    BuiltinTool, HostTools, OfferedTool, RUN_TERMINAL_COMMAND, RefusalReason, TOOLS, ToolAccess,
    ToolDescriptor, ToolKind, ToolNeed, ToolPolicyError, ToolRefusal, ToolSet, builtin_tool,
    check_tool_policy, check_wasi_tools, parse_tool_policy, run_terminal_command, runtime_tool_id,
};

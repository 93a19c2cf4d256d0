//! Commands for programs of the host, for agents and for the mails of a run. This backend does not
//! support most of them; the row of an unsupported command gives the reason or a replacement.

use super::super::format::Format;
use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::Host, GuestProgram, Handler, MailOperation,
};
use super::args::{arg, integer, json, limit, list, object, text};
use wp_codebox_contracts::schema_id;

const fn row(id: &'static str, reason: &'static str, description: &'static str) -> Row {
    Row::new(id, Host, Handler::Unsupported { reason }, description)
}

const fn mail(id: &'static str, operation: MailOperation, description: &'static str) -> Row {
    Row::new(id, Host, Handler::Mail(operation), description)
}

/// Argument that names the mail service. Every run has exactly one mail service, `mail`; the smtp
/// service of a run is the same one under another id. The run checks the id.
const SERVICE: AcceptedArg = text(
    "service",
    "Id of the smtp service: mail, or the id that the run gives it.",
)
.required();

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wp-codebox.agent-runtime-probe",
        Host,
        Handler::Program(GuestProgram::File("agent-runtime-probe.php")),
        "Reports whether a plugin that runs agents is installed and active.",
    )
    .args(&[
        text(
            "component",
            "Plugin that runs agents: PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin].",
        ),
        text(
            "provider-plugin-slugs",
            "Plugins of model providers, separated by commas.",
        ),
        list(
            "provider-plugin-contracts-json",
            "Provider plugins as a list of slugs or of {slug}.",
        ),
    ])
    .prints("JSON {command, status, ready, component, providerPlugins, missing, abilities, agents}")
    .requires(&["wordpress.run-php"]),
    Row::new(
        "wp-codebox.agent-sandbox-run",
        Host,
        Handler::Agent,
        "Runs the agent of a recipe in the same sandbox as its other steps; at most one step of a recipe.",
    )
    .args(&[
        text(
            "task",
            "Goal of the agent, or a task as JSON with the schema wp-codebox/task-input/v1.",
        )
        .required(),
        text(
            "agent",
            "Name of an agent preset; default: the built-in agent with the model.",
        ),
        text("mode", "Mode that the agent reads in the context of its task."),
        text("provider", "Id of the model's provider."),
        text("model", "Name of the model; the host sets its address."),
        text("session-id", "Id of the caller's session, returned in the document."),
        limit(
            "max-turns",
            1,
            "Maximum number of model responses of the built-in agent; default 60.",
        ),
        limit("timeout-seconds", 1, "Timeout of the step."),
        text(
            "component",
            "Plugin of inputs.extra_plugins that must be active: PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin].",
        )
        .repeatable(),
        text(
            "provider-plugin-slugs",
            "Plugins of inputs.extra_plugins that must be active, separated by commas.",
        ),
        list(
            "provider-plugin-contracts-json",
            "Plugins of inputs.extra_plugins that must be active, as a list of slugs or of {slug}.",
        ),
        list(
            "runtime-component-contracts-json",
            "Plugins of inputs.extra_plugins that must be active, as a list of {slug}.",
        ),
        object(
            "sandbox-tool-policy-json",
            "Tools of the built-in agent, wp-codebox/sandbox-tool-policy/v1.",
        ),
        list(
            "agent-bundles-json",
            "Agent bundles that a component imports before the agent runs; source is relative to the recipe.",
        ),
        object(
            "runtime-task-json",
            "Ability of the guest's WordPress that does the work: {ability, input}.",
        ),
    ])
    .prints("JSON {schema, command, status, agent, task, message, executions, usage, sessionId, error}")
    .schema(schema_id::AGENT_STEP_RESULT)
    .requires(&["wordpress.run-php", "wordpress.wp-cli"]),
    row(
        "wp-codebox.agent-fanout",
        "a guest cannot start guests; use the command line `wp-codebox agent-fanout`",
        "Runs several agents on parts of a task and merges their results.",
    )
    .args(&[
        json("request-json", "The request."),
        text("request-file", "File with the request."),
    ])
    .prints("JSON {schema, workers}")
    .schema("wp-codebox/agent-fanout-result/v1"),
    row(
        "wp-codebox.bounded-runtime-plan",
        "a guest cannot execute plans that start runtimes; write them as a recipe",
        "Executes a bounded plan of runtimes and commands.",
    )
    .args(&[
        json("plan-json", "The plan."),
        text("plan-file", "File with the plan."),
    ])
    .prints("JSON {schema, status, operations}")
    .schema("wp-codebox/bounded-runtime-plan-result/v1"),
    mail(
        "host/smtp.inspect",
        MailOperation::Inspect,
        "Lists the newest mails that the sandbox sent since the last reset.",
    )
    .args(&[
        SERVICE,
        integer("limit", 1, 100, "Maximum number of messages; default 20."),
        text("recipient", "Lists only mails to this address."),
        arg(
            "recipient-label",
            Format::Label,
            "Name to show in place of the recipient's address.",
        ),
        text("subject-marker", "Lists only mails with this text in the subject."),
        text(
            "link-marker",
            "Lists only mails and links with this text in the link.",
        ),
    ])
    .prints("JSON {messages, matched, received}"),
    mail(
        "host/smtp.reset",
        MailOperation::Reset,
        "Hides the mails that the sandbox sent so far from host/smtp.inspect; they remain in the bundle.",
    )
    .args(&[SERVICE])
    .prints("JSON {removed}"),
];

//! Commands for programs of the host, for agents and for the mails of a run. This backend does not
//! support most of them; the row of an unsupported command gives the reason or a replacement.

use super::super::format::Format;
use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::Host, GuestProgram, Handler, MailOperation,
};
use super::args::{arg, integer, json, list, one_of, text};

const fn row(id: &'static str, reason: &'static str, description: &'static str) -> Row {
    Row::new(id, Host, Handler::Unsupported { reason }, description)
}

const fn mail(id: &'static str, operation: MailOperation, description: &'static str) -> Row {
    Row::new(id, Host, Handler::Mail(operation), description)
}

/// Argument that names the mail service. Every run has exactly one mail service; a recipe need not
/// declare it.
const SERVICE: AcceptedArg = one_of("service", &["mail"], "Id of the service.").required();

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wp-codebox.agent-runtime-probe",
        Host,
        Handler::Program(GuestProgram::File("agent-runtime-probe.php")),
        "Reports whether a component that runs agents is installed and active.",
    )
    .args(&[
        text(
            "component",
            "Component: PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin].",
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
    row(
        "wp-codebox.agent-sandbox-run",
        "a guest cannot start guests; use the command line `wp-codebox agent-sandbox-run`",
        "Runs an agent on a task.",
    )
    .args(&[
        text("task", "Task of the agent.").required(),
        text("agent", "Name of the agent."),
        text("mode", "Mode of the agent."),
        text("provider", "Provider of the model."),
        text("model", "Name of the model."),
        text("session-id", "Name of a session."),
        integer("max-turns", 1, 10_000, "Maximum number of turns of the agent."),
        integer("timeout-seconds", 1, 86_400, "Timeout of the agent."),
        text(
            "component",
            "Component: PATH[,slug=SLUG,pluginFile=FILE,loadAs=plugin|mu-plugin].",
        ),
        text(
            "provider-plugin-slugs",
            "Plugins of model providers, separated by commas.",
        ),
        json(
            "provider-plugin-contracts-json",
            "Capabilities that the provider plugins must have.",
        ),
    ])
    .prints("Output of the agent")
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

//! Commands that try the site with many inputs. The registry lists the one that generates inputs,
//! but this backend does not support it.

use super::super::format::Format;
use super::super::model::{CommandDescriptor as Row, CommandGroup::Fuzz, GuestProgram, Handler};
use super::args::{PAGE_DIAGNOSTICS, arg, flag, json, limit, text};

const NO_FUZZ: Handler = Handler::Unsupported {
    reason: "there is no fuzz engine here; write the inputs as steps of a recipe",
};

const fn file(name: &'static str) -> Handler {
    Handler::Program(GuestProgram::File(name))
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wp-codebox/run-fuzz-suite",
        Fuzz,
        NO_FUZZ,
        "Runs a suite of cases with generated inputs.",
    )
    .args(&[
        json("input-json", "Input of the suite."),
        text("input-file", "Guest path of the input."),
        json("suite-json", "The suite."),
        text("suite-file", "Guest path of the suite."),
    ])
    .prints("JSON {schema, status, cases}")
    .schema("wp-codebox/fuzz-suite-result/v1")
    .requires(&[
        "wp-codebox.checkpoint-create",
        "wp-codebox.checkpoint-list",
        "wp-codebox.checkpoint-restore",
        "wordpress.ability",
        "wordpress.browser-actions",
        "wordpress.browser-page-load",
        "wordpress.browser-probe",
        "wordpress.cache-churn-observation",
        "wordpress.collect-workload-result",
        "wordpress.crud-operation",
        "wordpress.db-operation",
        "wordpress.editor-actions",
        "wordpress.editor-open",
        "wordpress.editor-validate-blocks",
        "wordpress.execution-surfaces",
        "wordpress.fuzz-admin-pages",
        "wordpress.fuzz-plugin-module-state",
        "wordpress.http-request",
        "wordpress.inventory-plugin-module-options-tables",
        "wordpress.invoke-cron-event",
        "wordpress.invoke-hook",
        "wordpress.invoke-wp-cli",
        "wordpress.rest-performance-observation",
        "wordpress.rest-request",
        "wordpress.run-php",
        "wordpress.run-workload",
        "wordpress.bench",
        "wordpress.wp-cli",
        "wordpress.runtime-discovery",
        "wordpress.inventory-database",
        "wordpress.server-page-load",
        "wordpress.simulated-admin-page-load",
        "wordpress.simulated-frontend-page-load",
    ]),
    Row::new(
        "wordpress.fuzz-admin-pages",
        Fuzz,
        file("fuzz-admin-pages.php"),
        "Loads the screens of wp-admin as an administrator, with each of the methods, and reports faults.",
    )
    .args(&[
        arg(
            "safe_methods",
            Format::ListOf(&["GET", "HEAD", "OPTIONS"]),
            "Methods to load each screen with; default GET.",
        ),
        limit("max-pages", 1, "Maximum number of screens to load; default 25."),
        limit("max_pages", 1, "The same as max-pages."),
        PAGE_DIAGNOSTICS,
    ])
    .prints("JSON {schema, command, status, adminUrl, menuLoaded, pages, coverage: [{path, method, status, httpStatus, outcome, notices, errors}], diagnostics}")
    .schema("wp-codebox/wordpress-admin-page-coverage/v1"),
    Row::new(
        "wordpress.fuzz-plugin-module-state",
        Fuzz,
        file("fuzz-plugin-module-state.php"),
        "Plans changes of the options and tables of plugins; with execute_mutations, changes each option and restores it.",
    )
    .args(&[
        flag(
            "external_dispatch",
            "Whether a change may send requests to other hosts; default false.",
        ),
        flag(
            "execute_mutations",
            "Whether to make the changes instead of only planning them; default false.",
        ),
        text(
            "mutation_mode",
            "Name of the strategy, copied into the result; plan-only and dry-run make no change.",
        ),
        flag(
            "connected_state_required_for_mutation",
            "Whether a change needs a plugin that is connected to its service; default true.",
        ),
        flag(
            "runtime_isolation_required_for_mutation",
            "Whether a change needs an isolated runtime, which this sandbox is; default true.",
        ),
        flag(
            "disposable_sandbox_required",
            "Whether a change needs a disposable sandbox, which this is; default true.",
        ),
    ])
    .prints("JSON {schema, command, status, mutationMode, executeMutations, safeguards, plannedActions, skipReasons, diagnostics}")
    .schema("wp-codebox/wordpress-plugin-module-state-plan/v1"),
];

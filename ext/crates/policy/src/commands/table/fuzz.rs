//! Commands that try the site with many generated inputs. The registry lists them, but this
//! backend does not support them.

use super::super::model::{CommandDescriptor as Row, CommandGroup::Fuzz, Handler};
use super::args::{DIAGNOSTICS, flag, integer, json, text};

const NO_FUZZ: Handler = Handler::Unsupported {
    reason: "there is no fuzz engine here; write the inputs as steps of a recipe",
};

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
        NO_FUZZ,
        "Loads every screen of wp-admin with varied inputs.",
    )
    .args(&[
        flag("safe_methods", "Whether to send only GET and HEAD."),
        integer("max-pages", 1, 200, "Maximum number of screens to load."),
        integer("max_pages", 1, 200, "The same as max-pages."),
        DIAGNOSTICS,
    ])
    .prints("JSON {schema, pages, coverage}")
    .schema("wp-codebox/wordpress-admin-page-coverage/v1"),
    Row::new(
        "wordpress.fuzz-plugin-module-state",
        Fuzz,
        NO_FUZZ,
        "Plans state changes of a plugin's modules.",
    )
    .args(&[
        flag(
            "external_dispatch",
            "Whether requests to other hosts are allowed.",
        ),
        flag(
            "execute_mutations",
            "Whether to make the changes instead of only planning them.",
        ),
        text("mutation_mode", "Strategy for choosing changes."),
        flag(
            "connected_state_required_for_mutation",
            "Whether a change needs a connected plugin.",
        ),
        flag(
            "runtime_isolation_required_for_mutation",
            "Whether a change needs an isolated runtime.",
        ),
        flag(
            "disposable_sandbox_required",
            "Whether a change needs a disposable sandbox.",
        ),
    ])
    .prints("JSON {schema, plan}")
    .schema("wp-codebox/wordpress-plugin-module-state-plan/v1"),
];

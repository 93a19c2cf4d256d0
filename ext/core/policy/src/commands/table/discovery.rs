//! Commands that list what the site has registered.

use super::super::format::Format;
use super::super::model::{
    CommandDescriptor as Row, CommandGroup::Discovery, GuestProgram, Handler,
};
use super::args::{arg, flag, limit};

const fn row(id: &'static str, file: &'static str, description: &'static str) -> Row {
    Row::new(
        id,
        Discovery,
        Handler::Program(GuestProgram::File(file)),
        description,
    )
}

pub(super) const ROWS: &[Row] = &[
    row(
        "wordpress.runtime-discovery",
        "runtime-discovery.php",
        "Describes the guest's WordPress: routes, screens, tables, URLs, blocks, roles, entry points, versions, plugins.",
    )
    .args(&[arg(
        "surface",
        Format::ListOf(&[
            "rest",
            "admin",
            "database",
            "frontend",
            "blocks",
            "auth",
            "execution",
            "all",
            "runtime",
            "plugins",
            "themes",
            "content",
            "users",
            "abilities",
        ]),
        "Returns only these parts; default: all parts.",
    )])
    .prints("JSON {schema, command, status, surfaces, rest?, admin?, database?, frontend?, blocks?, auth?, execution?, runtime?, plugins?, themes?, content?, users?, abilities?}")
    .schema("wp-codebox/wordpress-runtime-discovery/v1"),
    row(
        "wordpress.execution-surfaces",
        "execution-surfaces.php",
        "Lists all entry points of the site that run code.",
    )
    .prints("JSON {schema, command, status, surfaces: [{kind, command, items, total, truncated}], unsupported}")
    .schema("wp-codebox/wordpress-execution-surfaces/v1"),
    row(
        "wordpress.rest-route-inventory",
        "rest-route-inventory.php",
        "Lists the routes of the REST API with methods and arguments.",
    )
    .prints("JSON {schema, command, status, namespaces, routes: [{route, namespace, methods, endpoints}], total, truncated}")
    .schema("wp-codebox/wordpress-rest-route-inventory/v1"),
    row(
        "wordpress.admin-page-inventory",
        "admin-page-inventory.php",
        "Lists the wp-admin screens that the menus link to.",
    )
    .prints("JSON {schema, command, status, adminUrl, menuLoaded, pages: [{path, title, capability, parent, source}], total, truncated}")
    .schema("wp-codebox/wordpress-admin-page-inventory/v1"),
    row(
        "wordpress.admin-action-inventory",
        "admin-action-inventory.php",
        "Lists forms, links and hooks of wp-admin that trigger an action.",
    )
    .args(&[
        limit(
            "max-pages",
            0,
            "Maximum number of screens to render; default 10.",
        ),
        limit("max_pages", 0, "The same as max-pages."),
    ])
    .prints("JSON {schema, command, status, adminUrl, menuLoaded, pages: [{path, title, status}], actions: [{kind, name?, page?, method?, target?, action?, nonce?, fields?, callbacks?}], redaction}")
    .schema("wp-codebox/wordpress-admin-action-inventory/v1"),
    row(
        "wordpress.inventory-database",
        "inventory-database.php",
        "Lists tables, columns and row counts of the guest's database.",
    )
    .prints("JSON {schema, command, status, prefix, tables: [{name, core, rows, columns, indexes}], totals, truncated}")
    .schema("wp-codebox/wordpress-db-inventory/v1"),
    row(
        "wordpress.inventory-plugin-module-options-tables",
        "inventory-plugin-module-options-tables.php",
        "Lists options and tables that do not belong to WordPress core, with the plugins whose code names them; without values.",
    )
    .args(&[
        flag(
            "read_only",
            "Accepted for compatibility: the command only reads, with either value.",
        ),
        flag(
            "secret_placeholders_only",
            "Whether the result has no values; default true, and false is refused.",
        ),
    ])
    .prints("JSON {schema, command, status, readOnly, options: [{name, plugins}], tables: [{name, rows, plugins}], plugins, totals}")
    .schema("wp-codebox/wordpress-plugin-module-options-tables-inventory/v1"),
    row(
        "wordpress.frontend-url-inventory",
        "frontend-url-inventory.php",
        "Lists front-end URLs for every kind of page.",
    )
    .prints("JSON {schema, command, status, homeUrl, urls: [{kind, url, path, type?, id?}], rewriteRules, publicQueryVars, total, truncated}")
    .schema("wp-codebox/wordpress-frontend-url-inventory/v1"),
];

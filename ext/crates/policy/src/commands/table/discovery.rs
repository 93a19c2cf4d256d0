//! Commands that list what the site has registered.

use super::super::model::{
    CommandDescriptor as Row, CommandGroup::Discovery, GuestProgram, Handler,
};
use super::args::{flag, integer, one_of};

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
        "Describes the guest's WordPress: versions, plugins, themes, content, roles, abilities.",
    )
    .args(&[one_of(
        "surface",
        &[
            "all",
            "runtime",
            "plugins",
            "themes",
            "content",
            "users",
            "abilities",
        ],
        "Returns only this part; default: all parts.",
    )])
    .prints("JSON {schema, surface, runtime?, plugins?, themes?, content?, users?, abilities?}")
    .schema("wp-codebox/wordpress-runtime-discovery/v1"),
    row(
        "wordpress.execution-surfaces",
        "execution-surfaces.php",
        "Lists all entry points of the site that run code.",
    )
    .prints("JSON {schema, surfaces: [{kind, command, items, total, truncated}]}")
    .schema("wp-codebox/wordpress-execution-surfaces/v1"),
    row(
        "wordpress.rest-route-inventory",
        "rest-route-inventory.php",
        "Lists the routes of the REST API with methods and arguments.",
    )
    .prints("JSON {schema, namespaces, items: [{route, namespace, methods, endpoints}], total, truncated}")
    .schema("wp-codebox/wordpress-rest-route-inventory/v1"),
    row(
        "wordpress.admin-page-inventory",
        "admin-page-inventory.php",
        "Lists the wp-admin screens that the menus link to.",
    )
    .prints("JSON {schema, items: [{path, title, capability, parent, source}], total, truncated}")
    .schema("wp-codebox/wordpress-admin-page-inventory/v1"),
    row(
        "wordpress.admin-action-inventory",
        "admin-action-inventory.php",
        "Lists forms, links and hooks of wp-admin that trigger an action.",
    )
    .args(&[
        integer(
            "max-pages",
            0,
            200,
            "Maximum number of screens to render; default 10.",
        ),
        integer("max_pages", 0, 200, "The same as max-pages."),
    ])
    .prints("JSON {schema, adminAjax, adminPost, pages, forms: {items: [{kind, page, method, target, action, nonce, fields}]}}")
    .schema("wp-codebox/wordpress-admin-action-inventory/v1"),
    row(
        "wordpress.inventory-database",
        "inventory-database.php",
        "Lists tables, columns and row counts of the guest's database.",
    )
    .prints("JSON {schema, prefix, items: [{name, core, rows, columns, indexes}], total, truncated}")
    .schema("wp-codebox/wordpress-db-inventory/v1"),
    row(
        "wordpress.inventory-plugin-module-options-tables",
        "inventory-plugin-module-options-tables.php",
        "Lists options and tables that do not belong to WordPress core, with the plugins whose code names them; without values.",
    )
    .args(&[
        flag("read_only", "Whether the command is read-only; always true."),
        flag(
            "secret_placeholders_only",
            "Whether the result has placeholders in place of values.",
        ),
    ])
    .prints("JSON {schema, readOnly, plugins: {items: [{plugin, options, tables}]}, unclaimed}")
    .schema("wp-codebox/wordpress-plugin-module-options-tables-inventory/v1"),
    row(
        "wordpress.frontend-url-inventory",
        "frontend-url-inventory.php",
        "Lists front-end URLs for every kind of page.",
    )
    .prints("JSON {schema, home, items: [{kind, url, path, type?, id?}], total, truncated}")
    .schema("wp-codebox/wordpress-frontend-url-inventory/v1"),
];

//! Lists what the site has.

use super::super::model::{
    CommandDescriptor as Row, CommandGroup::Discovery, GuestProgram, Handler,
};
use super::{flag, integer, one_of};

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
        "Tells what the guest's WordPress is made of: versions, plugins, themes, types, routes.",
    )
    .args(&[one_of(
        "surface",
        &[
            "all",
            "core",
            "plugins",
            "themes",
            "types",
            "rest",
            "hooks",
            "abilities",
            "cli",
        ],
        "Only this part; all without it.",
    )])
    .prints("JSON {schema, surface, wordpress, php, plugins, themes, postTypes, taxonomies, rest}")
    .schema("wp-codebox/wordpress-runtime-discovery/v1"),
    row(
        "wordpress.execution-surfaces",
        "execution-surfaces.php",
        "Lists everything of the site that can be made to run code.",
    )
    .prints("JSON {schema, surfaces: [{kind, name, count}]}")
    .schema("wp-codebox/wordpress-execution-surfaces/v1"),
    row(
        "wordpress.rest-route-inventory",
        "rest-route-inventory.php",
        "Lists the routes of the REST API with methods and arguments.",
    )
    .prints("JSON {schema, routes: [{route, namespace, methods, args}]}")
    .schema("wp-codebox/wordpress-rest-route-inventory/v1"),
    row(
        "wordpress.admin-page-inventory",
        "admin-page-inventory.php",
        "Lists the screens of wp-admin that the menus name.",
    )
    .prints("JSON {schema, pages: [{slug, parent, title, capability, url}]}")
    .schema("wp-codebox/wordpress-admin-page-inventory/v1"),
    row(
        "wordpress.admin-action-inventory",
        "admin-action-inventory.php",
        "Lists forms, links and hooks of wp-admin that do something.",
    )
    .args(&[
        integer("max-pages", 1, 200, "Most screens that are rendered."),
        integer("max_pages", 1, 200, "The same as max-pages."),
    ])
    .prints("JSON {schema, actions: [{kind, name, page, capability}]}")
    .schema("wp-codebox/wordpress-admin-action-inventory/v1"),
    row(
        "wordpress.inventory-database",
        "inventory-database.php",
        "Lists tables, columns and counts of rows of the guest's database.",
    )
    .prints("JSON {schema, engine, tables: [{name, rows, columns}]}")
    .schema("wp-codebox/wordpress-db-inventory/v1"),
    row(
        "wordpress.inventory-plugin-module-options-tables",
        "inventory-plugin-module-options-tables.php",
        "Lists options and tables that plugins brought, without values that look secret.",
    )
    .args(&[
        flag("read_only", "Whether nothing may be written; it always is."),
        flag(
            "secret_placeholders_only",
            "Whether values are shown as placeholders only.",
        ),
    ])
    .prints("JSON {schema, plugins: [{plugin, modules, options, tables}]}")
    .schema("wp-codebox/wordpress-plugin-module-options-tables-inventory/v1"),
    row(
        "wordpress.frontend-url-inventory",
        "frontend-url-inventory.php",
        "Lists URLs of the front end, of every kind of page.",
    )
    .prints("JSON {schema, urls: [{url, kind}]}")
    .schema("wp-codebox/wordpress-frontend-url-inventory/v1"),
];

//! Commands for programs, PHP, WP-CLI, sessions, requests and tests.

use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::Core, GuestProgram, Handler,
};
use super::args::{
    BODY, BROWSER_URLS, CAPABILITY, DESTRUCTIVE, DIAGNOSTICS, EXPECT_STATUS, HEADERS, METHOD,
    MUTATES, OUTPUT_DIR, PARAMS, SESSION, USER, flag, integer, json, line, list, object, one_of,
    snapshot_args, text,
};
use wp_codebox_contracts::schema_id;

const DIRECT: Handler = Handler::Program(GuestProgram::Direct);

const fn file(name: &'static str) -> Handler {
    Handler::Program(GuestProgram::File(name))
}

const ROLE: AcceptedArg = text(
    "role",
    "Role of the user, who is created if missing; default administrator.",
);
const SESSION_NAME: AcceptedArg = text(
    "session",
    "Session name for later commands; default `default`.",
);
const ACTION: AcceptedArg = text("action", "Action of the nonce; default -1.");
const NETWORK: AcceptedArg = flag(
    "network",
    "Whether the command applies to the whole multisite network.",
);
const PHPUNIT_XML: AcceptedArg = text(
    "phpunit-xml",
    "Configuration of PHPUnit, path in the guest.",
);
const PHPUNIT_XML_DEFAULT: AcceptedArg = flag(
    "phpunit-xml-default",
    "With phpunit-xml: whether that file may be missing. Without: whether PHPUnit may search for its configuration file.",
);
const TEST_FILE: AcceptedArg = text("test-file", "Runs only this test file.");
const CHANGED_TESTS: AcceptedArg = list(
    "changed-tests-json",
    "Runs only these test files; an empty list selects none, so all tests run.",
);
const AUTOLOAD: AcceptedArg = text(
    "autoload-file",
    "Guest path of the autoloader that loads PHPUnit.",
);
const TESTS_DIR: AcceptedArg = text("tests-dir", "Directory with the tests.");
const DEFINES: AcceptedArg = object(
    "wp-config-defines-json",
    "Constants to define before WordPress loads.",
);
const MULTISITE: AcceptedArg = flag(
    "multisite",
    "Whether the tests run on a multisite network; the guest's site becomes one and stays it.",
);

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "inspect-mounted-inputs",
        Core,
        DIRECT,
        "Lists the directory entries at each mount target in the guest.",
    )
    .prints("JSON {command, mounts: [{target, source: guest path, mode, exists, entries: [names], entryCount}]}"),
    Row::new(
        "command-agent-run",
        Core,
        DIRECT,
        "Runs a program as the agent, without a shell, in the first writable mount, or another command of this catalogue.",
    )
    .args(&[
        text(
            "command",
            "Id of another command, which the policy must list too; or a program, whose bare name is looked up in the guest's PATH.",
        )
        .required(),
        list(
            "args-json",
            "JSON list of arguments: of a program, or name=value of the other command.",
        ),
        flag("parse-json", "Whether the output of the program must be JSON."),
        text("session-id", "Name of a session, passed to the program and copied into the result."),
        text("correlation-id", "Name of a task, passed to the program and copied into the result."),
        object("session-metadata-json", "Free-form data, passed to the program."),
        flag(
            "auth-required",
            "Whether the command is refused without auth-context-json.",
        ),
        object(
            "auth-context-json",
            "Requesting actor, passed to the program; grants no permission.",
        ),
    ])
    .prints("JSON {schema, command, status, target: {command, args}, exitCode, stdout, stderr, diagnostics, artifactRefs}; of a program, stdout is its own output")
    .schema(schema_id::COMMAND_AGENT_RUN),
    Row::new(
        "wordpress.session",
        Core,
        file("session.php"),
        "Logs a user of the guest's site in and stores the session's cookies in the guest.",
    )
    .args(&[USER, SESSION_NAME, ROLE, BROWSER_URLS, OUTPUT_DIR])
    .prints("JSON {schema, command, status, session, user, cookies: [names], expiresAt, artifacts: {auth, storageState, summary}}")
    .schema("wp-codebox/wordpress-session/v1"),
    Row::new(
        "wordpress.nonce",
        Core,
        file("nonce.php"),
        "Creates a nonce for an action and a user or session of the guest's site, and stores it in the guest.",
    )
    .args(&[ACTION, USER, SESSION, ROLE, OUTPUT_DIR])
    .prints("JSON {schema, command, status, action, nonce: {present}, lifetimeSeconds, user, session?, artifacts: {auth, storageState?, summary}}")
    .schema("wp-codebox/wordpress-nonce/v1"),
    Row::new(
        "wordpress.action-auth",
        Core,
        file("action-auth.php"),
        "Creates a session and a nonce that together authorise one action of the site, and stores both in the guest.",
    )
    .args(&[ACTION, USER, SESSION_NAME, ROLE, BROWSER_URLS, OUTPUT_DIR])
    .prints("JSON {schema, command, status, action, nonce: {present}, lifetimeSeconds, session, user, cookies: [names], artifacts: {auth, storageState, summary}}")
    .schema("wp-codebox/wordpress-action-auth/v1"),
    Row::new(
        "wordpress.run-php",
        Core,
        DIRECT,
        "Runs PHP in the guest with WordPress loaded.",
    )
    .args(&[
        text("code", "PHP with or without an opening tag, at most 1 MiB."),
        text(
            "code-file",
            "PHP file of the guest or of the host: relative to the working directory of wp-codebox run, or to the recipe.",
        ),
        one_of(
            "bootstrap",
            &["wordpress", "none"],
            "Code loaded first: wordpress (default) or none.",
        ),
        DIAGNOSTICS,
        integer(
            "diagnostics-max-items",
            1,
            i64::MAX,
            "Maximum number of recorded queries; default 100, and never above 500.",
        ),
        integer(
            "diagnostics-max-bytes",
            1,
            i64::MAX,
            "Maximum size of recorded queries in bytes; default 65536, and never above 524288.",
        ),
    ])
    .prints("Output of the code"),
    Row::new(
        "wordpress.run-workload",
        Core,
        file("run-workload.php"),
        "Runs a file of the guest: PHP, or a list of steps that are commands.",
    )
    .args(&[
        text("path", "Guest path of the file."),
        text("file", "The same as path."),
        one_of(
            "type",
            &["php", "json"],
            "Type of the file; default: by its name.",
        ),
    ])
    .prints("JSON {schema, path, type, status, steps: [{index, command, status, result}]}")
    .schema("wp-codebox/wordpress-workload-result/v1")
    .requires(&[
        "wordpress.run-php",
        "wordpress.bench",
        "wordpress.wp-cli",
        "wordpress.ability",
        "wordpress.rest-request",
        "wordpress.db-operation",
        "wordpress.runtime-discovery",
        "wordpress.inventory-database",
        "wordpress.browser-probe",
    ]),
    Row::new(
        "wordpress.wp-cli",
        Core,
        DIRECT,
        "Runs WP-CLI on the guest's WordPress.",
    )
    .args(&[line(
        "command",
        "Command line with or without the leading wp; split with shell quoting rules, run without a shell. Further arguments are its next words.",
    )
    .required()])
    .prints("Output of WP-CLI"),
    Row::new(
        "wordpress.invoke-wp-cli",
        Core,
        file("invoke-wp-cli.php"),
        "Runs WP-CLI as a recorded action, with its permissions and effects in the result.",
    )
    .args(&[
        line("command", "Command line with or without the leading wp.").required(),
        MUTATES,
        CAPABILITY,
        DESTRUCTIVE,
    ])
    .prints("JSON {schema, command, status, action, target, safety, result: {exitCode, stdout, stderr, json?}, mutation, diagnostics}")
    .schema("wp-codebox/wordpress-execution-action-result/v1"),
    Row::new(
        "wordpress.capture-state-bundle",
        Core,
        file("capture-state-bundle.php"),
        "Writes files and database of the site into one bundle of state.",
    )
    .args(snapshot_args![text("label", "Name of the bundle.")])
    .prints("JSON {schema, command, status, label, digest, files, database, options, postTypes, omitted, artifacts: {runtimeSnapshot, manifest}}")
    .schema("wp-codebox/wordpress-state-bundle-capture/v1"),
    Row::new(
        "wordpress.export-replay-package",
        Core,
        file("export-replay-package.php"),
        "Writes a package that creates the same site elsewhere.",
    )
    .args(snapshot_args![
        text("label", "Name of the package."),
        OUTPUT_DIR,
        text("landing-page", "Path of the site to open first."),
        integer(
            "import-ms",
            0,
            999_999_999_999_999,
            "Milliseconds an import is expected to take; written into the package.",
        ),
    ])
    .prints("JSON {schema, command, status, id, label, digest, files, steps, limitations, artifacts: {manifest, blueprint, runtimeSnapshot}}")
    .schema("wp-codebox/wordpress-replay-export/v1"),
    Row::new(
        "wordpress.ability",
        Core,
        file("ability.php"),
        "Executes an ability of the guest's site.",
    )
    .args(&[
        text("name", "Name of the ability.").required(),
        json("input", "Input of the ability as JSON."),
        text(
            "expected-result-schema",
            "Schema id that the result must name, or a JSON Schema that it must have.",
        ),
        text(
            "user",
            "Login, e-mail address or id of the user that the command acts as; default: the first administrator.",
        ),
        SESSION,
        text("principal", "The same as principal-json, or as user."),
        object(
            "principal-json",
            "Acting user: {user, role}; a missing user is created with the role.",
        ),
    ])
    .prints("JSON {schema, ability, status, user, result}")
    .schema("wp-codebox/wordpress-ability-result/v1"),
    Row::new(
        "wordpress.http-request",
        Core,
        file("http-request.php"),
        "Sends a request to the guest's own site through its server, or to an allowed host.",
    )
    .args(&[
        METHOD,
        text("url", "URL, or a path of the guest's own site.").required(),
        HEADERS,
        BODY,
        EXPECT_STATUS,
    ])
    .prints("JSON {schema, url, method, status, headers, body, bodyBytes, phpErrors}")
    .schema("wp-codebox/wordpress-http-response/v1"),
    Row::new(
        "wordpress.rest-request",
        Core,
        file("rest-request.php"),
        "Dispatches a request to the REST API of the guest's site, in process.",
    )
    .args(&[
        METHOD,
        text("path", "Route, with or without /wp-json.").required(),
        HEADERS,
        PARAMS,
        BODY,
        json("body-json", "Body as JSON."),
        USER,
        SESSION,
    ])
    .prints("JSON {schema, method, path, status, headers, data, user}")
    .schema("wp-codebox/wordpress-rest-response/v1"),
    Row::new(
        "wordpress.collect-workload-result",
        Core,
        file("collect-workload-result.php"),
        "Collects a JSON document that a workload wrote in the guest, as a typed artifact.",
    )
    .args(&[
        text("artifact", "Guest path of the document, or its name below /tmp/codebox-artifacts."),
        text("schema", "Schema id that the document must name."),
    ])
    .prints("JSON {schema, command, status, name, payloadSchema, payload, artifacts}")
    .schema("wp-codebox/typed-workload-artifact/v1"),
    Row::new(
        "wordpress.phpunit",
        Core,
        file("phpunit.php"),
        "Runs PHPUnit for a plugin in the guest.",
    )
    .args(&[
        text("plugin-slug", "Directory of the plugin below wp-content/plugins."),
        text("cwd", "Working directory."),
        text("test-root", "Directory that paths of tests are relative to."),
        text("code", "PHP code of a test case or of one test."),
        text(
            "code-file",
            "Test file of the guest or of the host: relative to the working directory of wp-codebox run, or to the recipe.",
        ),
        AUTOLOAD,
        one_of(
            "autoload-file-role",
            &["phpunit", "harness", "project"],
            "Code that autoload-file loads: PHPUnit (default, also harness), or the project's, whose directory is not searched for PHPUnit.",
        ),
        text(
            "project-autoload-file",
            "Autoloader of the project, path in the guest.",
        ),
        TESTS_DIR,
        PHPUNIT_XML,
        PHPUNIT_XML_DEFAULT,
        TEST_FILE,
        CHANGED_TESTS,
        flag("discovery-only", "Whether tests are only listed."),
        text(
            "shard",
            "Part of the test classes to run, such as 2/8; all parts together run each class once.",
        ),
        object("env-json", "Environment of the tests."),
        DEFINES,
        text(
            "dependency-mounts",
            "Plugins and directories with vendor/autoload.php whose code the tests need, separated by commas.",
        ),
        list(
            "dependency-plugins-json",
            "Plugins to activate before the tests: directories, main files, or {slug}.",
        ),
        list(
            "preload-files-json",
            "PHP files to load before WordPress.",
        ),
        list("bootstrap-files-json", "PHP files to load before the tests."),
        list("phpunit-args-json", "Further arguments of PHPUnit."),
        one_of(
            "bootstrap-mode",
            &["managed", "project", "wordpress", "none"],
            "Code loaded before the tests: WordPress, by its test library if that is found (managed or wordpress, default), the project's own file, or none.",
        ),
        text(
            "project-bootstrap",
            "Bootstrap file of the project, path in the guest.",
        ),
        MULTISITE,
        one_of(
            "database-type",
            &["sqlite", "mysql"],
            "Database of the tests: that of the guest; mysql needs a run with a mysql service.",
        ),
    ])
    .prints("JSON {schema, command, status, runner, exitCode, summary, suites, failures: [{suite, test, file, line, message}], output}")
    .schema(schema_id::TEST_RESULTS),
    Row::new(
        "wordpress.plugin-check",
        Core,
        file("plugin-check.php"),
        "Checks a plugin with the plugin Plugin Check, if that is installed in the guest.",
    )
    .args(&[
        text("plugin-slug", "Directory of the plugin below wp-content/plugins.").required(),
        text("checks", "Only these checks, separated by commas."),
    ])
    .prints("JSON {schema, command, status, plugin, tool, runtime: {ran, reason}, summary, findings}")
    .schema("wp-codebox/plugin-check/v1"),
    Row::new(
        "wordpress.plugin-setup",
        Core,
        file("plugin-setup.php"),
        "Lists, installs, activates, deactivates or deletes plugins in the guest.",
    )
    .args(&[
        one_of(
            "action",
            &["install", "list", "activate", "deactivate", "delete"],
            "Action; default: activate if a plugin is named, otherwise list. install downloads a missing plugin from WordPress.org if the policy allows it.",
        ),
        text("plugin", "Plugin file relative to wp-content/plugins, or its directory."),
        text("slug", "The same as plugin."),
        flag("activate", "Whether to activate; for install default no."),
        NETWORK,
    ])
    .prints("JSON {schema, command, status, action, target, plugins, operations, errors, artifactRefs}")
    .schema("wp-codebox/wordpress-plugin-setup/v1"),
    Row::new(
        "wordpress.plugin-state",
        Core,
        file("plugin-state.php"),
        "Reports whether a plugin is installed and active, or changes that.",
    )
    .args(&[
        one_of(
            "action",
            &["report", "status", "activate", "deactivate", "inspect"],
            "Action; default report, also called status and inspect.",
        ),
        text("plugin", "Plugin file relative to wp-content/plugins, or its directory."),
        text("slug", "The same as plugin."),
        text(
            "file",
            "Main file below the plugin's directory; alone, the same as plugin.",
        ),
        text("path", "The same as plugin, absolute or relative to wp-content/plugins."),
        NETWORK,
    ])
    .prints("JSON {schema, command, status, action, target, activePluginsBefore, activePluginsAfter, networkActivePluginsBefore, networkActivePluginsAfter, multisite, diagnostics, errors}")
    .schema("wp-codebox/wordpress-plugin-state/v1"),
    Row::new(
        "wordpress.ensure-plugin-active",
        Core,
        file("plugin-state.php"),
        "Activates a plugin unless it is active already.",
    )
    .args(&[
        text("plugin", "Plugin file relative to wp-content/plugins, or its directory.").required(),
        text("slug", "The same as plugin."),
        text(
            "file",
            "Main file below the plugin's directory; alone, the same as plugin.",
        ),
        text("path", "The same as plugin, absolute or relative to wp-content/plugins."),
        NETWORK,
    ])
    .prints("JSON {schema, command, status, action: activate, target, changed, activePluginsBefore, activePluginsAfter, networkActivePluginsBefore, networkActivePluginsAfter, multisite, diagnostics, errors}")
    .schema("wp-codebox/wordpress-plugin-state/v1")
    .requires(&["wordpress.plugin-state"]),
    Row::new(
        "wordpress.core-phpunit",
        Core,
        file("core-phpunit.php"),
        "Runs the tests of WordPress itself, if the guest has a development checkout.",
    )
    .args(&[
        text("core-root", "Directory of the checkout."),
        TESTS_DIR,
        PHPUNIT_XML,
        PHPUNIT_XML_DEFAULT,
        TEST_FILE,
        CHANGED_TESTS,
        AUTOLOAD,
        DEFINES,
        MULTISITE,
    ])
    .prints("JSON {schema, command, status, runner, exitCode, summary, suites, failures, output}")
    .schema(schema_id::TEST_RESULTS),
    Row::new(
        "wordpress.theme-setup",
        Core,
        file("theme-setup.php"),
        "Lists, installs, activates or deletes themes in the guest.",
    )
    .args(&[
        one_of(
            "action",
            &["install", "switch", "list", "activate", "delete"],
            "Action; default: switch (also activate) if a theme is named, otherwise list. install downloads a missing theme from WordPress.org if the policy allows it.",
        ),
        text("theme", "Directory of the theme below wp-content/themes."),
        text("slug", "The same as theme."),
        flag("activate", "Whether to switch; for install default no."),
    ])
    .prints("JSON {schema, command, status, action, target, themes, operations, errors, artifactRefs}")
    .schema("wp-codebox/wordpress-theme-setup/v1"),
    Row::new(
        "wordpress.theme-check",
        Core,
        file("theme-check.php"),
        "Checks a theme with the plugin Theme Check, if that is installed in the guest.",
    )
    .args(&[text("theme", "Directory of the theme below wp-content/themes.").required()])
    .prints("JSON {schema, status, theme, checks, summary, findings}")
    .schema("wp-codebox/theme-check/v1"),
];

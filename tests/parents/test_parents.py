"""The full workflow on each parent site (a site that starts sandboxes), on a too old WordPress, and with a missing or stale extension."""

import json
import re

import pytest
from world import must

SAMPLE = "wp-content/plugins/sample"
AGENT = "php agent.php fix"
# Debian's WordPress lacks a file that wp_mail() needs, so the mail with the recovery link is disabled.
NO_MAIL = "--exec=WP_CLI::add_wp_hook( 'wp_codebox_recovery_address', '__return_empty_string' );"


def whole_path(world, version, database):
    """Runs the full workflow: install, activate, doctor, run, review, apply through the host plugin, audit, uninstall."""
    site = world.site(version, database)
    site.wp("plugin", "activate", "wp-codebox", "host-plugin", "sample").expect()
    server = site.eval("global $wpdb; echo $wpdb->db_server_info(), ' ', get_class( $wpdb );")
    must(("MariaDB" in server) == (database == "mariadb"), f"this is another database: {server}")
    must(("SQLite" in server) == (database == "sqlite"), f"this is another database: {server}")
    found = site.eval("echo get_bloginfo( 'version' );")
    wanted = site.world.env["WORDPRESS_VERSION"] if version == "provisioned" else version + "."
    must(found.startswith(wanted), f"WordPress is {found}, not {wanted}")

    doctor = site.wp("codebox", "doctor", "--format=json").expect().json
    must(doctor["level"] == "full", f"the level is {doctor['level']}")

    before = (site.path / SAMPLE / "sample.php").read_text()
    run = site.wp("codebox", "run-agent-task", "Mend it", "--plugin=sample", f"--agent-command={AGENT}", "--check=php -l sample.php", "--format=json").expect().json
    must(run["run"]["outcome"] == "succeeded" and run["wp"] == found, f"{run['run']['outcome']} {run['wp']}")
    paths = sorted(entry["path"] for entry in run["changed_files"])
    must(paths == [f"/wordpress/{SAMPLE}/inc/more.php", f"/wordpress/{SAMPLE}/sample.php"], f"{paths}")
    must((site.path / SAMPLE / "sample.php").read_text() == before, "the run changed the site")
    run_id = run["run"]["run_id"]

    seen = site.wp("codebox", "artifacts", "inspect", run_id, "--format=json").expect().json
    must(seen["verification"]["valid"] and seen["verification"]["signature"]["status"] == "signed-by-this-host", json.dumps(seen["verification"])[:800])
    must("+" in site.wp("codebox", "artifacts", "diff", run_id).expect().out, "there is no diff")
    refused = site.wp("codebox", "artifacts", "apply", run_id, "--approved-files=not-there.php")
    must(refused.exit != 0 and "wp_codebox_approved_files_invalid" in refused.err, str(refused))

    # Through REST as an administrator, as the admin screen does.
    listed = json.loads(site.eval(
        "wp_set_current_user( 1 ); $r = new WP_REST_Request( 'GET', '/wp-abilities/v1/abilities/wp-codebox/list-artifacts/run' );"
        "$a = rest_do_request( $r ); echo wp_json_encode( [ $a->get_status(), $a->get_data() ] );"))
    must(listed[0] == 200 and listed[1]["total"] >= 1 and listed[1]["artifacts"][0]["run_id"] == run_id, json.dumps(listed)[:800])

    applied = site.wp("codebox", "artifacts", "apply", run_id, "--approved-files=sample.php", "--format=json").expect().json
    must(applied["result"]["status"] == "applied", json.dumps(applied["result"]))
    after = (site.path / SAMPLE / "sample.php").read_text()
    must(after == before.replace("helo", "hello") and after != before, "the approved file is not what was approved")
    must("moore" in (site.path / SAMPLE / "inc/more.php").read_text(), "a file that was not approved was written")
    conflict = site.wp("codebox", "artifacts", "apply", run_id, "--approved-files=sample.php")
    must(conflict.exit == 1 and "wp_codebox_apply_conflict" in conflict.err, str(conflict))

    # Without the host plugin, direct apply writes the file and takes it back. No web server runs, so the health is unknown.
    site.wp("plugin", "deactivate", "host-plugin").expect()
    site.wp("option", "update", "wp_codebox_direct_apply", "1").expect()
    written = site.wp("codebox", "artifacts", "apply", run_id, "--approved-files=inc/more.php", "--format=json", NO_MAIL).expect().json["result"]
    must((written["adapter"], written["health"]["status"]) == ("codebox-direct", "unknown"), json.dumps(written))
    must("moore" not in (site.path / SAMPLE / "inc/more.php").read_text(), "the file was not written")
    must(site.wp("codebox", "artifacts", "rollback", run_id, "--porcelain").expect().out == "restored\n", "the change was not taken back")
    must("moore" in (site.path / SAMPLE / "inc/more.php").read_text(), "the file was not restored")

    # Options with non-ASCII keys, quotes and backslashes survive this database.
    options = {"wp_codebox_agents": {"größe": None, "a": {"command": "php 'ü' \\\\x", "success_codes": [0, 3]}}}
    del options["wp_codebox_agents"]["größe"]
    site.wp("option", "update", "wp_codebox_agents", json.dumps(options["wp_codebox_agents"]), "--format=json").expect()
    must(site.wp("option", "get", "wp_codebox_agents", "--format=json").expect().json == options["wp_codebox_agents"], "an option came back changed")
    site.wp("plugin", "deactivate", "wp-codebox").expect()
    site.wp("plugin", "uninstall", "wp-codebox", "--skip-delete").expect()
    left = site.eval("global $wpdb; echo implode( ' ', $wpdb->get_col( \"SELECT option_name FROM $wpdb->options WHERE option_name LIKE '%codebox%' AND option_name NOT LIKE '%active_plugins%'\" ) );")
    must(left.strip() == "", f"left behind: {left}")
    must(world.state.joinpath("sites").is_dir(), "the state directory is gone")
    quiet(site)


def quiet(site):
    """Checks that the site's PHP debug log has no notice, warning or error that names this plugin."""
    lines = [line for line in site.complaints().splitlines() if re.search(r"codebox|host-plugin", line) and "mu-plugins/sqlite" not in line]
    # The scratch directory's name contains the project's name.
    lines = [line for line in lines if re.search(r"codebox|host-plugin", line.replace(str(site.path), "").replace(str(site.world.work), ""))]
    must(not lines, "debug.log:\n" + "\n".join(lines[:10]))


# `provisioned` is the WordPress in the directory CODEBOX_WORDPRESS; a version number is a package of Debian.
def test_task_review_and_apply_succeed_on_provisioned_wordpress_with_sqlite(world):
    whole_path(world, "provisioned", "sqlite")


@pytest.mark.matrix
def test_task_review_and_apply_succeed_on_provisioned_wordpress_with_mariadb(world):
    whole_path(world, "provisioned", "mariadb")


def test_task_review_and_apply_succeed_on_wordpress_7_1_of_debian_with_mariadb(world):
    whole_path(world, "7.1", "mariadb")


@pytest.mark.matrix
def test_task_review_and_apply_succeed_on_wordpress_7_1_of_debian_with_sqlite(world):
    whole_path(world, "7.1", "sqlite")


def test_each_blog_of_a_network_sees_only_its_own_bundles_and_uninstall_removes_network_and_blog_options(world):
    """A multisite network with two blogs on MariaDB: each has its own runs, and uninstalling removes the data of both."""
    site = world.site("provisioned", "mariadb")
    (site.path / SAMPLE / "sample.php").write_text((site.path / SAMPLE / "sample.php").read_text().replace("hello", "helo"))
    site.wp("core", "multisite-convert", "--title=Network").expect()
    config = site.path / "wp-config.php"
    if "MULTISITE" not in config.read_text():
        network = {"MULTISITE": "true", "SUBDOMAIN_INSTALL": "false", "DOMAIN_CURRENT_SITE": "'localhost'", "PATH_CURRENT_SITE": "'/'", "SITE_ID_CURRENT_SITE": "1", "BLOG_ID_CURRENT_SITE": "1"}
        config.write_text(config.read_text().replace("$table_prefix", "".join(f"define( '{key}', {value} );\n" for key, value in network.items()) + "$table_prefix", 1))
    site.wp("plugin", "activate", "wp-codebox", "--network").expect()
    site.wp("site", "create", "--slug=second").expect()
    second = "--url=http://localhost/second/"
    run = site.wp("codebox", "run-agent-task", "x", "--plugin=sample", "--agent-command=php agent.php nothing", "--format=json").expect().json["run"]["run_id"]
    must(site.wp("codebox", "artifacts", "get", run, "--format=json").expect().json["artifact"]["run_id"] == run, "the own bundle is not found")
    other = site.wp("codebox", "artifacts", "get", run, second)
    must(other.exit == 1 and "wp_codebox_artifact_not_found" in other.err, str(other))
    site.eval("update_network_option( null, 'wp_codebox_max_runs', 4 ); switch_to_blog( 2 ); update_option( 'wp_codebox_x', 1 );")
    site.wp("plugin", "deactivate", "wp-codebox", "--network").expect()
    site.wp("plugin", "uninstall", "wp-codebox", "--skip-delete").expect()
    rows = world.mariadb.query(f"SELECT meta_key FROM {site.schema}.wp_sitemeta WHERE meta_key LIKE 'wp\\_codebox\\_%' UNION SELECT option_name FROM {site.schema}.wp_2_options WHERE option_name LIKE 'wp\\_codebox\\_%'")
    must(rows == "", f"left behind: {rows}")
    quiet(site)


def too_old(world, database):
    """WordPress 6.8 refuses to activate the plugin. If the plugin is active anyway, it reports what
    is missing, and WP-CLI works."""
    site = world.site("6.8", database)
    site.wp("plugin", "activate", "sample").expect()
    refused = site.wp("plugin", "activate", "wp-codebox")
    must(refused.exit != 0 and "6.9" in refused.err, str(refused))
    # The plugin can be active nevertheless: after a WordPress downgrade, or by an edited option.
    site.eval("update_option( 'active_plugins', array_merge( get_option( 'active_plugins' ), [ 'wp-codebox/wp-codebox.php' ] ) );")
    site.forget_complaints()

    rows = {row["id"]: row for row in site.wp("codebox", "doctor", "--format=json").expect().json["checks"]}
    must(rows["wordpress"]["status"] == "warning" and "no Abilities API" in rows["wordpress"]["message"] and rows["extension"]["status"] == "ok", json.dumps(rows)[:600])
    must(site.wp("codebox", "artifacts", "list", "--format=count").expect().out.strip() == "0", "there are bundles already")
    run = site.wp("codebox", "run-agent-task", "Mend it", "--plugin=sample", f"--agent-command={AGENT}", "--format=json").expect().json
    must(run["run"]["outcome"] == "succeeded" and run["wp"].startswith("6.8"), f"{run['run']['outcome']} {run['wp']}")
    must(site.wp("codebox", "artifacts", "list", "--format=count").expect().out.strip() == "1", "the bundle is not listed")
    must(site.wp("codebox", "artifacts", "inspect", run["run"]["run_id"], "--format=json").expect().json["verification"]["valid"], "the bundle does not verify")
    must(json.loads(site.eval("echo wp_json_encode( WP_Codebox_API::list_artifacts() );"))["total"] == 1, "the facade does not work")
    # With --user, the commands check the capability, although no ability is registered.
    site.wp("user", "create", "editor", "editor@example.org", "--role=editor").expect()
    must(site.wp("codebox", "artifacts", "list", "--user=editor").exit == 126, "an editor was let in")
    site.wp("codebox", "artifacts", "list", "--user=admin").expect()

    with site.serve() as web:
        status, front = web.get("/")
        must(status == 200 and "critical error" not in front, f"{status} {front[:300]}")
        web.log_in()
        for page in ("/wp-admin/", "/wp-admin/plugins.php", "/wp-admin/site-health.php"):
            status, body = web.get(page)
            must(status == 200 and "critical error" not in body, f"{page}: {status}")
            must("This WordPress has no Abilities API" in body and "Update to WordPress 6.9 or newer." in body, f"{page} has no notice")
        status, body = web.get("/wp-admin/options-general.php?page=wp-codebox-settings")
        must(status == 200 and 'name="wp_codebox_max_runs"' in body, f"the settings page: {status} {body[:300]}")
        status, _ = web.get("/?rest_route=/wp/v2/posts")
        must(status == 200, f"REST: {status}")
    quiet(site)


@pytest.mark.matrix
def test_plugin_activation_is_refused_on_too_old_wordpress_6_8_with_mariadb(world):
    too_old(world, "mariadb")


def test_plugin_activation_is_refused_on_too_old_wordpress_6_8_with_sqlite(world):
    too_old(world, "sqlite")


REQUESTS = ["/", "/?p=1", "/?feed=rss2", "/?s=x", "/?p=999999", "/wp-login.php", "/wp-cron.php?doing_wp_cron=1", "/xmlrpc.php?rsd", "/wp-sitemap.xml",
            "/?rest_route=/wp/v2/posts", "/?rest_route=/wp/v2/types", "/?rest_route=/", "/wp-admin/admin-ajax.php?action=nope"]
ADMIN = ["/wp-admin/", "/wp-admin/plugins.php", "/wp-admin/site-health.php", "/wp-admin/site-health.php?tab=debug", "/wp-admin/options-general.php", "/wp-admin/post-new.php",
         "/wp-admin/tools.php", "/wp-admin/export-personal-data.php", "/?rest_route=/wp/v2/settings", "/?rest_route=/wp-abilities/v1/abilities"]
COMMANDS = [("post", "list", "--format=json"), ("option", "get", "blogname"), ("cron", "event", "run", "--due-now"), ("user", "list", "--fields=ID,user_login,roles"), ("plugin", "list", "--name=sample")]


def plain(text):
    """Replaces the parts of a response that differ between any two requests."""
    text = re.sub(r"\b[0-9a-f]{10}\b|\b[0-9a-f]{32,64}\b", "HEX", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d|in \d+\.\d+s", "TIME", text)
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", text)


def answers(site, extension):
    """Sends every request and runs every command; returns the results by name."""
    found = {}
    with site.serve(extension) as web:
        for path in REQUESTS:
            status, body = web.get(path)
            found[path] = (status, plain(body))
        web.log_in()
        for path in ADMIN:
            status, body = web.get(path)
            found["admin " + path] = (status, body)
    for command in COMMANDS:
        call = site.wp(*command, extension=extension)
        found["wp " + " ".join(command)] = (call.exit, plain(call.out + call.err))
    return found


def test_missing_or_stale_extension_leaves_public_pages_unchanged(world):
    """Extension missing, then stale: public responses except the REST index stay equal byte for byte; admin pages work and name the fix."""
    site = world.site("provisioned", "sqlite")
    site.wp("plugin", "deactivate", "--all", extension=False).expect()
    site.wp("plugin", "activate", "sample", extension=False).expect()
    site.wp("cron", "event", "run", "--due-now", extension=False)
    answers(site, False)
    # The first visits scheduled cron events a minute ahead. Running them now keeps them out of the comparison.
    site.wp("cron", "event", "run", "--all", extension=False).expect()
    left = [row["hook"] for row in site.wp("cron", "event", "list", "--format=json", extension=False).expect().json]
    must("wp_update_comment_type_batch" not in left, f"planned still: {left}")
    without = answers(site, False)
    must(without["/"][0] == 200 and without["/?p=999999"][0] == 404 and without["admin /wp-admin/"][0] == 200, "the site itself does not work")
    site.wp("plugin", "activate", "wp-codebox", extension=False).expect()
    site.forget_complaints()

    def compare(found, sentence):
        for name, (status, body) in without.items():
            must(found[name][0] == status, f"{name}: {found[name][0]}, without the plugin {status}\n{found[name][1][:500]}")
            must("critical error" not in found[name][1], f"{name}: a critical error")
            if name == "/?rest_route=/":
                must(without_own_routes(found[name][1], set()) == json.loads(body), "the index of the REST API differs")
            elif not name.startswith("admin "):
                must(found[name][1] == body, f"{name} differs:\n{difference(body, found[name][1])}")
        for page in ("admin /wp-admin/", "admin /wp-admin/plugins.php", "admin /wp-admin/site-health.php"):
            must(sentence in found[page][1], f"{page} does not say what is wrong")
        must(sentence not in found["admin /wp-admin/options-general.php"][1], "the notice is on every page")

    compare(answers(site, False), "The PHP extension wp_codebox is not loaded in this PHP")
    manifest = site.path / "wp-content/plugins/wp-codebox/abilities/manifest.php"
    text = manifest.read_text()
    manifest.write_text(re.sub(r"'[0-9a-f]{64}'", "'" + "c" * 64 + "'", text))
    try:
        compare(answers(site, True), "its JSON schemas differ from those of the plugin")
        stale = site.wp("codebox", "artifacts", "list")
        must(stale.exit == 125 and "wp_codebox_extension_stale" in stale.err, str(stale))
    finally:
        manifest.write_text(text)
    # Control: with a matching extension there is no notice, and the public responses stay equal, except for the
    # plugin's routes in the index of the REST API.
    fitting = answers(site, True)
    for page in ("admin /wp-admin/", "admin /wp-admin/plugins.php"):
        must("Codebox cannot run" not in fitting[page][1], f"{page} complains about a fitting extension")
    for name in REQUESTS:
        if name == "/?rest_route=/":
            must(without_own_routes(fitting[name][1], {"runtime-task"}) == json.loads(without[name][1]), "the index of the REST API differs with the extension")
            continue
        must(fitting[name] == without[name], f"{name} differs with the extension:\n{difference(without[name][1], fitting[name][1])}")
    # Control: the comparison detects a plugin that changes a response.
    (site.path / "wp-content/mu-plugins/visible.php").write_text("<?php add_action( 'wp_head', static function () { echo '<meta name=\"seen\">'; } );")
    must(answers(site, False)["/"] != without["/"], "the comparison sees nothing")
    (site.path / "wp-content/mu-plugins/visible.php").unlink()
    quiet(site)


#: First parts of the plugin's routes without the extension. The route of files of browser sandboxes is not in the index.
ROUTES = {"browser-blueprint-ref", "preview-boot-ref", "browser-contained-site-sync"}


def without_own_routes(index, more):
    """Returns the index of the REST API without the plugin's routes, which must be those of browser sessions and `more`."""
    document = json.loads(index)
    document["namespaces"].remove("wp-codebox/v1")
    routes = {route for route in document["routes"] if route.startswith("/wp-codebox/v1")}
    must({route.split("/")[3] for route in routes if route != "/wp-codebox/v1"} == ROUTES | more, f"{routes}")
    for route in routes:
        del document["routes"][route]
    return document


def difference(one, two):
    """Returns the context of the first difference between two texts."""
    at = next((index for index, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))
    return f"…{one[max(0, at - 80):at + 120]!r}\n…{two[max(0, at - 80):at + 120]!r}"

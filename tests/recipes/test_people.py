"""Runs recipes with users, sessions, browser actors, dumps, seeds, plain secrets and agent bundles."""

import json
import os
import sqlite3
import subprocess

import recipes
from harness import must
from test_worked import files, worked

PASSWORD = "correct horse battery"


def printed(answer, phase, at=0):
    return json.loads(recipes.executions(answer, phase)[at]["stdout"])


def test_two_actors_of_one_browser_scenario_are_logged_in_as_different_users(bench):
    answer, bundle, _ = worked(bench, "multi-actor")
    scenario = printed(answer, "steps")
    actors = [(row.get("actor"), row["status"]) for row in scenario["steps"]]
    must(actors == [(name, "passed") for name in ("author", "author", "editor", "editor", "editor", "author", None, None)], str(actors))
    must("wp-login.php" in scenario["finalUrl"], f"the browser without an actor is at {scenario['finalUrl']}")
    me = printed(answer, "steps", 1)
    must(me["status"] == 200 and me["data"]["id"] == 501, f"the session belongs to {me}")
    again = printed(answer, "steps", 2)
    must(again["user"]["login"] == "editor", f"the named session became one of {again['user']}")
    names = [row["name"] for row in answer.json["phaseEvidence"]]
    must(names == ["create_fixture_users", "create_user_sessions", "run_workloads"], f"phases {names}")
    must(PASSWORD not in answer.stdout + answer.stderr, "the password is in the output")
    for path, content in files(bundle):
        must(PASSWORD.encode() not in content, f"the password is in {path}")


def test_password_of_a_fixture_user_logs_in_and_another_one_does_not(bench):
    user = {"name": "ann", "username": "annie", "password": PASSWORD}
    code = "foreach ( array( '" + "', '".join(PASSWORD.split(" ")) + "' ) as $i => $word ) { $words[] = $word; } " \
        "echo get_class( wp_authenticate( 'annie', implode( ' ', $words ) ) ), ' ', get_class( wp_authenticate( 'annie', 'wrong' ) );"
    path = recipes.write(bench, "password", [recipes.php(code)], inputs={"fixtureUsers": [user]})
    answer = recipes.run(bench, path).expect(0)
    must(recipes.executions(answer, "steps")[0]["stdout"] == "WP_User WP_Error", str(answer))


def test_fixture_user_whose_id_belongs_to_another_user_fails_the_run_before_the_steps(bench):
    ran = [recipes.php("echo 'ran';")]
    taken = recipes.write(bench, "taken", ran, inputs={"fixtureUsers": [{"name": "ann", "userId": 1}]})
    answer = recipes.run(bench, taken)
    must(answer.exit == 1 and "the id 1 belongs to the user admin" in recipes.executions(answer, "fixture-user")[0]["stderr"], str(answer))
    must(not recipes.executions(answer, "steps"), "a step ran without its user")
    recipes.check_failed_document(answer)
    free = recipes.write(bench, "free", ran, inputs={"fixtureUsers": [{"name": "ann", "userId": 90}]})
    must(recipes.executions(recipes.run(bench, free).expect(0), "steps")[0]["stdout"] == "ran", "the free id was refused")


def test_seeded_site_has_the_ids_of_its_fixture_and_a_user_session_opens_a_page_as_admin(bench):
    answer, _, _ = worked(bench, "seeded-users")
    (seed,) = answer.json["siteSeeds"]
    must(seed["status"] == "imported" and seed["moved"] == [], str(seed))
    must(seed["ids"] == {"users": {"40": 40}, "terms": {"30": 30}, "posts": {"1": 1, "77": 77}}, str(seed["ids"]))
    page = printed(answer, "steps", 2)
    must(page["identity"]["user"]["login"] == "admin" and page["http"]["status"] == 200, str(page["identity"]))


def seed_of(bench, name, fixture, ids, plugin=None, **more):
    seed = {"type": "fixture", "name": name, "source": "./seed.json", "deterministicIds": ids, "scopes": {"users": {"maxRecords": 9, "anonymize": True}, "posts": {"maxRecords": 9}}, **more}
    sections = {"inputs": {"siteSeeds": [{key: value for key, value in seed.items() if value is not None}]}}
    path = recipes.write(bench, name, [recipes.wp("post list --post_type=post --field=post_title")], **sections)
    if plugin is not None:
        os.makedirs(os.path.join(os.path.dirname(path), "importer"), exist_ok=True)
        with open(os.path.join(os.path.dirname(path), "importer", "importer.php"), "w", encoding="utf-8") as file:
            file.write(plugin)
        with open(path, encoding="utf-8") as file:
            recipe = json.load(file)
        recipe["inputs"]["extra_plugins"] = [{"source": "./importer"}]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe, file)
    with open(os.path.join(os.path.dirname(path), "seed.json"), "w", encoding="utf-8") as file:
        file.write(fixture if isinstance(fixture, str) else json.dumps(fixture))
    return recipes.run(bench, path)


def test_taken_id_of_a_seeded_user_fails_the_run_with_block_and_is_reported_as_moved_with_warn(bench):
    # The guest already has a user with the id 1. With `warn` the seeded user gets another id, which `moved` reports.
    users = {"users": [{"id": 1, "role": "author"}]}
    required = seed_of(bench, "required", users, {"strategy": "numeric", "onUnsupported": "block"})
    must(required.exit == 1 and "the id 1 is not free" in recipes.executions(required, "seed")[0]["stderr"], str(required))
    preferred = seed_of(bench, "preferred", users, {"strategy": "numeric", "onUnsupported": "warn"}).expect(0)
    must(len(preferred.json["siteSeeds"][0]["moved"]) == 1, str(preferred.json["siteSeeds"]))


def test_site_seed_of_a_format_other_than_json_fails_without_a_plugin_that_imports_it(bench):
    fixture = "Title A\nTitle B\n"
    without = seed_of(bench, "format-without", fixture, None, format="lines")
    must(without.exit == 1 and "no plugin of the guest imports the format lines" in recipes.executions(without, "seed")[0]["stderr"], str(without))
    plugin = """<?php
/* Plugin Name: Lines */
add_filter( 'wp_codebox_site_seed_importers', function ( $importers ) {
	$importers['lines'] = fn( $seed ) => array( 'posts' => array_map( fn( $line ) => array( 'post_title' => $line ), explode( "\n", trim( $seed['contents'] ) ) ) );
	return $importers;
} );
"""
    with_plugin = seed_of(bench, "format-with", fixture, None, plugin, format="lines").expect(0)
    titles = recipes.executions(with_plugin, "steps")[0]["stdout"].split("\n")
    must("Title A" in titles and "Title B" in titles, f"posts {titles}")


def test_imported_dump_keeps_the_home_and_site_url_of_the_guest(bench):
    answer, _, _ = worked(bench, "database-fixture")
    (dump,) = answer.json["fixtureDatabases"]
    must(dump["status"] == "imported" and dump["truncated"] == ["wp_posts", "wp_postmeta"], str(dump))
    must(dump["kept"] == ["home", "siteurl"], f"changed addresses: {dump['kept']}")


def dump_of(bench, name, text):
    path = recipes.write(bench, name, [recipes.wp("db prefix")], inputs={"fixtureDatabases": [{"name": name, "version": "1", "source": "./dump.sql"}]})
    with open(os.path.join(os.path.dirname(path), "dump.sql"), "w", encoding="utf-8") as file:
        file.write(text)
    return recipes.run(bench, path)


def test_database_dump_with_a_statement_that_cannot_run_fails_with_the_line_of_the_statement(bench):
    good = "CREATE TABLE a (id int);\nINSERT INTO a VALUES (1);\n"
    dump_of(bench, "statement-good", good).expect(0)
    for name, text, line, why in [
        ("statement-bad", good + "\nCREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.id = 2;", "line 4", "CREATE TRIGGER"),
        ("statement-delimiter", good + "DELIMITER //\nSELECT 1 //", "line 3", "are not SQL"),
        ("statement-open", good + "INSERT INTO a VALUES ('x", "line 3", "not closed"),
    ]:
        answer = dump_of(bench, name, text)
        said = recipes.executions(answer, "fixture-database")[0]["stderr"]
        must(answer.exit == 1 and line in said and why in said, f"{name}: {said!r}\n{answer}")
        must(answer.json["fixtureDatabases"][0]["status"] == "failed", str(answer.json["fixtureDatabases"]))


def test_secret_env_value_reaches_the_guest_but_no_output_log_or_bundle(bench):
    secret = "plain-secret-of-the-suite-4712"
    path = recipes.write(bench, "plain-secret", [recipes.php("$v = getenv( 'FOO_TOKEN' ); echo $v, ' ', strlen( $v );")], inputs={"secretEnv": ["FOO_TOKEN"]})
    answer = recipes.run(bench, path, environment={"FOO_TOKEN": secret}).expect(0)
    said = recipes.executions(answer, "steps")[0]["stdout"]
    must(said.endswith(f" {len(secret)}") and secret not in said, f"the guest has {said!r}")
    must(secret not in answer.stdout + answer.stderr, "the secret is in the output")
    for file, content in files(recipes.verified(bench, answer)):
        must(secret.encode() not in content, f"the secret is in {file}")
    projected = recipes.run(bench, path, environment={"WP_CODEBOX_SECRET_ENV_PROJECTIONS": json.dumps({"FOO_TOKEN": secret})}).expect(0)
    must(recipes.executions(projected, "steps")[0]["stdout"] == said, str(projected))
    missing = recipes.run(bench, path).expect(0)
    must(recipes.executions(missing, "steps")[0]["stdout"] == " 0", str(missing))
    short = recipes.run(bench, path, environment={"FOO_TOKEN": "short"})
    issues = short.json["validation"]["issues"]
    must([(row["code"], row["path"]) for row in issues] == [("invalid-secret-env", "$.inputs.secretEnv[0]")], str(short))


IMPORTER = """<?php
/* Plugin Name: Importer */
function wp_agent_import_runtime_bundles( $bundles, $options ) {
	update_option( 'seen_bundles', array_map( fn( $row ) => array( $row['bundle'] ?? json_decode( file_get_contents( $row['source'] ), true ), $row['slug'] ?? null, $row['on_conflict'], $row['owner_id'] ), $bundles ) );
	return array_fill( 0, count( $bundles ), array( 'success' => true ) );
}
"""


def test_agent_bundles_are_imported_by_a_plugin_of_the_recipe_and_fail_without_one(bench):
    bundles = [{"source": "./agent.json", "slug": "one"}, {"bundle": {"name": "two"}, "on_conflict": "skip", "owner_id": 1}]
    step = [recipes.php("echo wp_json_encode( get_option( 'seen_bundles' ) );")]
    for name, plugins in [("bundles", [{"source": "./importer"}]), ("bundles-without", [])]:
        path = recipes.write(bench, name, step, inputs={"agent_bundles": bundles, "extra_plugins": plugins})
        directory = os.path.dirname(path)
        os.makedirs(os.path.join(directory, "importer"), exist_ok=True)
        for file, text in [("importer/importer.php", IMPORTER), ("agent.json", '{"name": "one"}')]:
            with open(os.path.join(directory, file), "w", encoding="utf-8") as opened:
                opened.write(text)
        answer = recipes.run(bench, path)
        if plugins:
            seen = json.loads(recipes.executions(answer.expect(0), "steps")[0]["stdout"])
            must(seen == [[{"name": "one"}, "one", "upgrade", 1], [{"name": "two"}, None, "skip", 1]], str(seen))
        else:
            said = recipes.executions(answer, "agent-bundle")[0]["stderr"]
            must(answer.exit == 1 and "wp_agent_import_runtime_bundles" in said, str(answer))


TABLES = {
    "users": "ID INTEGER PRIMARY KEY, user_login TEXT, user_pass TEXT, user_email TEXT, user_activation_key TEXT, display_name TEXT",
    "usermeta": "umeta_id INTEGER PRIMARY KEY, user_id INTEGER, meta_key TEXT, meta_value TEXT",
    "posts": "ID INTEGER PRIMARY KEY, post_type TEXT, post_status TEXT, post_name TEXT, post_title TEXT, post_content TEXT, post_excerpt TEXT, post_date TEXT,"
             " post_author INTEGER, post_parent INTEGER, menu_order INTEGER, comment_status TEXT, post_mime_type TEXT, post_password TEXT",
    "terms": "term_id INTEGER PRIMARY KEY, name TEXT, slug TEXT",
    "term_taxonomy": "term_taxonomy_id INTEGER PRIMARY KEY, term_id INTEGER, taxonomy TEXT, description TEXT, parent INTEGER",
    "term_relationships": "object_id INTEGER, term_taxonomy_id INTEGER",
    "options": "option_id INTEGER PRIMARY KEY, option_name TEXT, option_value TEXT",
}


def site(bench, name, config):
    """Writes a site with an SQLite database whose rows hold private values; returns its directory."""
    directory = os.path.join(bench.directory, name)
    os.makedirs(os.path.join(directory, "wp-content", "database"))
    with open(os.path.join(directory, "wp-config.php"), "w", encoding="utf-8") as file:
        file.write("<?php\n" + config + "\nfile_put_contents( __DIR__ . '/ran', '1' );\n")
    with open(os.path.join(directory, "wp-content", "db.php"), "w", encoding="utf-8") as file:
        file.write("<?php // SQLite\nfile_put_contents( __DIR__ . '/ran', '1' );\n")
    database = sqlite3.connect(os.path.join(directory, "wp-content", "database", ".ht.sqlite"))
    for table, columns in TABLES.items():
        database.execute(f"CREATE TABLE s_{table} ({columns})")
    database.execute("INSERT INTO s_users VALUES (7, 'jane.private', '$P$Bprivatehash', 'jane@private.example', 'privatekey', 'Jane Private')")
    database.execute("INSERT INTO s_usermeta VALUES (1, 7, 's_capabilities', 'a:1:{s:6:\"editor\";b:1;}'), (2, 7, 'session_tokens', 'privatetoken')")
    row = "({0}, 'post', '{1}', 'p{0}', 'Post {0}', '', '', '2026-01-01 00:00:00', 7, 0, 0, 'open', '', '{2}')"
    database.execute("INSERT INTO s_posts VALUES " + ", ".join([row.format(1, "publish", ""), row.format(2, "private", ""), row.format(3, "publish", "protected"), row.format(4, "publish", "")]))
    database.execute("INSERT INTO s_options VALUES (1, 'blogname', 'Parent'), (2, 'shop_api_key', 'privateapikey'), (3, 'active_plugins', 'a:1:{i:0;s:5:\"a.php\";}'), "
                     "(4, 'shop_gateway', 'a:1:{s:4:\"live\";a:1:{s:10:\"secret_key\";s:13:\"privatemember\";}}'), (5, 'shop_look', 'a:2:{s:3:\"key\";s:0:\"\";s:5:\"color\";s:3:\"red\";}')")
    database.commit()
    database.close()
    return directory


def read(bench, directory, scopes):
    """Returns what the program that reads a parent site answers."""
    program = os.path.join(bench.environment["CODEBOX_SHARE"], "host", "parent-content.php")
    question = json.dumps({"wordpress": directory, "name": "parent", "scopes": scopes})
    ran = subprocess.run([bench.environment["CODEBOX_PHP"], "-d", "display_errors=0", program], input=question, capture_output=True, text=True, check=False)
    must(ran.returncode == 0, f"exit {ran.returncode}: {ran.stderr}")
    must(not os.path.exists(os.path.join(directory, "ran")) and not os.path.exists(os.path.join(directory, "wp-content", "ran")), "code of the site ran")
    return ran.stdout


def test_content_of_a_parent_site_has_no_private_value_and_its_code_does_not_run(bench):
    directory = site(bench, "private-parent", "$table_prefix = 's_';")
    before = sorted(os.listdir(os.path.join(directory, "wp-content", "database")))
    text = read(bench, directory, {"users": {"maxRecords": 9, "anonymize": True}, "posts": {"maxRecords": 9}, "options": {"names": ["blogname"]}, "activePlugins": True})
    fixture = json.loads(text)["fixture"]
    must(fixture["users"] == [{"id": 7, "role": "editor"}], str(fixture["users"]))
    must([row["id"] for row in fixture["posts"]] == [1, 4], str(fixture["posts"]))
    must(fixture["options"] == {"blogname": "Parent"} and fixture["activePlugins"] == ["a.php"], str(fixture))
    must("rivate" not in text, f"a private value: {text}")
    must(sorted(os.listdir(os.path.join(directory, "wp-content", "database"))) == before, "the reader left files beside the database")
    limited = json.loads(read(bench, directory, {"posts": {"slugs": ["p4"], "maxRecords": 1}}))["fixture"]
    must([row["id"] for row in limited["posts"]] == [4], str(limited))
    refused = read(bench, directory, {"options": {"names": ["shop_api_key"]}})
    must("can hold a secret" in json.loads(refused)["error"] and "privateapikey" not in refused, refused)
    refused = read(bench, directory, {"options": {"names": ["shop_gateway"]}})
    must("can hold a secret" in json.loads(refused)["error"] and "privatemember" not in refused, refused)
    look = json.loads(read(bench, directory, {"options": {"names": ["shop_look"]}}))["fixture"]["options"]
    must(look == {"shop_look": {"key": "", "color": "red"}}, str(look))


def test_parent_site_whose_wp_config_computes_the_table_prefix_is_refused(bench):
    directory = site(bench, "computed-parent", "$table_prefix = getenv( 'PREFIX' );")
    must("computes $table_prefix" in json.loads(read(bench, directory, {"posts": {"maxRecords": 1}}))["error"], "it was read")


def test_parent_site_seed_copies_content_and_is_refused_for_a_wordpress_core_without_a_site(bench):
    seed = {"type": "parent_site", "name": "parent", "scopes": {"options": {"names": ["blogname"]}, "users": {"maxRecords": 2, "anonymize": True}, "activePlugins": True}}
    path = recipes.write(bench, "parent-seed", [recipes.wp("option get blogname")], inputs={"siteSeeds": [seed]})
    call = recipes.arguments(bench, path)
    refused = bench.call(*call)
    issues = [(row["code"], row["path"]) for row in refused.json["validation"]["issues"]]
    must(issues == [("unsupported-site-seed-source", "$.inputs.siteSeeds[0].type")], str(refused))
    call[call.index("--wordpress") + 1] = bench.environment["CODEBOX_PARENT"]
    answer = bench.call(*call).expect(0)
    (row,) = answer.json["siteSeeds"]
    must(row["status"] == "imported" and row["created"]["options"] == 1 and row["created"]["users"] >= 1, str(row))
    must(recipes.executions(answer, "steps")[0]["stdout"].strip() != "Codebox", "the guest has its own name")

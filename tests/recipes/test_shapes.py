"""Recipes as other projects write them: for a plugin, a theme, a benchmark, a network of sites and a seeded site."""

import io
import json
import os
import zipfile

import recipes
from harness import must
from recipes import php, wp

CONTENT = "/wordpress/wp-content"
WXR = """<?xml version="1.0" encoding="UTF-8" ?>
<rss version="2.0" xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:wp="http://wordpress.org/export/1.2/"><channel><wp:wxr_version>1.2</wp:wxr_version>
<wp:author><wp:author_login>ed</wp:author_login><wp:author_email>ed@example.org</wp:author_email><wp:author_display_name>Ed</wp:author_display_name></wp:author>
<wp:category><wp:category_nicename>news</wp:category_nicename><wp:cat_name>News</wp:cat_name></wp:category>
<item><title>Child &amp; co</title><dc:creator>ed</dc:creator><content:encoded><![CDATA[<p>It's "quoted" \\ text</p>]]></content:encoded>
<wp:post_id>902</wp:post_id><wp:post_date>2024-01-02 03:04:05</wp:post_date><wp:post_name>child</wp:post_name><wp:status>publish</wp:status>
<wp:post_parent>901</wp:post_parent><wp:post_type>page</wp:post_type><wp:postmeta><wp:meta_key>colour</wp:meta_key><wp:meta_value>red</wp:meta_value></wp:postmeta>
<wp:comment><wp:comment_author>Ann</wp:comment_author><wp:comment_content>Nice</wp:comment_content><wp:comment_approved>1</wp:comment_approved></wp:comment></item>
<item><title>Parent</title><dc:creator>ed</dc:creator><wp:post_id>901</wp:post_id><wp:post_name>parent</wp:post_name><wp:status>publish</wp:status>
<wp:post_type>page</wp:post_type><category domain="category" nicename="news"><![CDATA[News]]></category></item></channel></rss>"""


def files(bench, name, rows):
    """Writes files beside the recipe of this name."""
    directory = os.path.join(bench.directory, f"recipe-{name}")
    for path, content in rows.items():
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    bench.own(directory)


def zipped(rows):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in rows.items():
            archive.writestr(path, content)
    return out.getvalue()


def plugin(name, code=""):
    return f"<?php\n/* Plugin Name: {name} */\n{code}"


def printed(answer):
    return json.loads(recipes.executions(answer, "steps")[-1]["stdout"])


def test_plugin_recipe_with_mounts_packages_and_overlays_runs_and_a_mount_in_a_system_directory_is_refused(bench):
    inputs = {
        "workspaces": [{"target": "//workspace//tool/", "seed": {"type": "directory", "source": "./tool"}}],
        "mounts": [{"source": "./harness", "target": "/harness"}, {"source": "./must", "target": f"//wordpress//wp-content/mu-plugins/"},
                   {"source": "./config.json", "target": f"{CONTENT}/config.json"}, {"source": "./config.json", "target": "/opt/tool/config.json"},
                   {"source": "./config.json", "target": "/tmp/in/config.json", "mode": "readonly"},
                   {"source": "./data", "target": f"{CONTENT}/plugins/shop/data", "mode": "readonly"}],
        "extra_plugins": [{"source": "./monorepo", "sourceSubdir": "packages/shop/", "slug": "shop"},
                          {"source": "https://example.org/bank.git", "sourcePath": "./bank", "slug": "bank", "composer": "install"},
                          {"source": "./early", "slug": "early", "loadAs": "mu-plugin", "activate": False, "sourceSubpath": "."}],
        "component_manifest": {"schema": "wp-codebox/component-manifest/v1", "components": [{"slug": "part", "source": "./part"}, {"slug": "shop"}]},
        "dependency_overlays": [{"kind": "composer-package", "package": "acme/pay", "source": "./pay", "consumer": "bank"}],
        "sourcePackages": [{"name": "lib", "source": "./lib", "target": "lib", "deny": ["private/**"], "artifact": {"path": "/workspace/lib/a.txt"}}],
    }
    files(bench, "shapes", {
        "tool/a.txt": "a", "harness/run.php": "<?php return basename( __DIR__ );", "must/one.php": "<?php define( 'BY_MUST', 'must' );",
        "config.json": "{}", "monorepo/packages/shop/shop.php": plugin("Shop", "define( 'BY_SHOP', 1 );"), "bank/bank.php": plugin("Bank"),
        "bank/composer.json": "{}", "bank/vendor/autoload.php": "<?php", "bank/vendor/acme/pay/pay.txt": "old", "pay/pay.txt": "new",
        "data/d.txt": "replaced", "monorepo/packages/shop/data/d.txt": "own", "early/early.php": plugin("Early", "define( 'BY_EARLY', 1 );"),
        "part/part.php": plugin("Part", "define( 'BY_PART', 1 );"), "lib/a.txt": "lib", "lib/private/b.txt": "no"})
    code = f"""require_once ABSPATH . 'wp-admin/includes/plugin.php';
file_put_contents( '/harness/new.txt', 'n' ); file_put_contents( '{CONTENT}/config.json', '{{"a":1}}' ); file_put_contents( WPMU_PLUGIN_DIR . '/two.php', '<?php' );
mkdir( WPMU_PLUGIN_DIR . '/contained-runtime/own' ); mkdir( WPMU_PLUGIN_DIR . '/deep/contained-runtime/early', 0755, true );
echo wp_json_encode( array( require '/harness/run.php', BY_MUST, BY_SHOP, BY_EARLY, BY_PART, is_plugin_active( 'bank/bank.php' ), is_plugin_active( 'shop/shop.php' ),
is_writable( '/opt/tool/config.json' ), is_writable( '/tmp/in/config.json' ), file_get_contents( '/workspace/tool/a.txt' ), is_dir( '/workspace/lib/private' ),
is_file( WPMU_PLUGIN_DIR . '/wp-codebox-guest.php' ), file_get_contents( WP_PLUGIN_DIR . '/bank/vendor/acme/pay/pay.txt' ), file_get_contents( WP_PLUGIN_DIR . '/shop/data/d.txt' ) ) );"""
    recipe = recipes.write(bench, "shapes", [php(code)], inputs=inputs, runtime={"backend": "wordpress-playground", "wp": "latest", "phpVersion": "7.4", "workers": 2})
    answer = recipes.run(bench, recipe).expect(0)
    must(printed(answer) == ["harness", "must", 1, 1, 1, True, True, False, False, "a", False, True, "new", "replaced"], str(answer))
    changed = {row["path"] for row in answer.json["changedFiles"]}
    # The launcher made the directory of the component `early`; the guest made the others.
    made = {f"{CONTENT}/mu-plugins/{name}" for name in ("two.php", "contained-runtime/own", "deep/contained-runtime/early")}
    must(changed == {"/harness/new.txt"} | made, str(changed))
    kept = {row["name"]: row for row in answer.json["declaredArtifacts"]}
    must(kept["mount-2"]["size"] == 7 and kept["lib"]["status"] == "collected", str(kept))
    notices = " ".join(answer.json["notices"])
    must("asks for PHP 7.4" in notices and "runtime.workers" in notices and "/opt/tool/config.json" in notices, notices)
    with open(os.path.join(recipes.verified(bench, answer), "metadata.json"), encoding="utf-8") as file:
        must("asks for PHP 7.4" in file.read(), "the bundle has no notice")
    for target in ("/usr/x", "/etc/x", "/run/codebox/x", "/opt/codebox/x", f"{CONTENT}/mu-plugins/contained-runtime/x"):
        bad = recipes.write(bench, "places", [php("1;")], inputs={"mounts": [{"source": "../recipe-shapes/tool", "target": target}]})
        refused = recipes.run(bench, bad).expect(1, "wp_codebox_recipe_invalid").json["validation"]["issues"]
        must([(row["code"], row["path"]) for row in refused] == [("invalid-sandbox-path", "$.inputs.mounts[0].target")], str(refused))


def test_blueprint_installs_plugins_and_themes_of_the_host_and_a_plugin_of_wordpress_org_is_refused_by_default(bench):
    files(bench, "theme", {"own/style.css": "/*\nTheme Name: Own\n*/", "own/index.php": "<?php",
                           "packed.zip": zipped({"packed/packed.php": plugin("Packed", "define( 'BY_PACKED', 1 );")}), "mounted/again.zip": zipped({"again/again.php": plugin("Again")})})
    steps = [{"step": "login", "username": "admin", "password": "password"},
             {"step": "installPlugin", "pluginData": {"resource": "url", "url": "./packed.zip"}, "options": {"activate": True}},
             {"step": "installPlugin", "pluginData": {"resource": "vfs", "path": "/workspace/mounted/again.zip"}},
             {"step": "installPlugin", "pluginData": {"resource": "literal:directory", "name": "text", "files": {"text.php": plugin("Text"), "inc": {"a.php": "<?php"}}}},
             {"step": "installTheme", "themeData": {"resource": "url", "url": "file:./own"}},
             {"step": "writeFiles", "writeToPath": f"{CONTENT}/x", "filesTree": {"resource": "literal:directory", "name": "x", "files": {"sub": {"b.txt": "B"}}}},
             {"step": "request", "request": {"url": "/?x=1"}}]
    blueprint = {"landingPage": "/", "features": {"networking": True}, "preferredVersions": {"php": "8.0", "wp": "latest"}, "steps": steps}
    code = f"""require_once ABSPATH . 'wp-admin/includes/plugin.php'; echo wp_json_encode( array( get_stylesheet(), BY_PACKED, is_plugin_active( 'again/again.php' ),
is_plugin_active( 'text/text.php' ), file_get_contents( '{CONTENT}/x/sub/b.txt' ) ) );"""
    inputs = {"mounts": [{"source": "./mounted", "target": "/workspace/mounted"}]}
    recipe = recipes.write(bench, "theme", [php(code)], runtime={"blueprint": blueprint}, inputs=inputs)
    must(printed(recipes.run(bench, recipe).expect(0)) == ["own", 1, True, True, "B"], "other packages")
    bundled = {"steps": [{"step": "installTheme", "themeData": {"resource": "wordpress.org/themes", "slug": "twentytwentyfive"}}]}
    code = "echo wp_json_encode( array( get_stylesheet() ) );"
    recipe = recipes.write(bench, "bundled", [php(code)], runtime={"blueprint": bundled})
    must(printed(recipes.run(bench, recipe).expect(0)) == ["twentytwentyfive"], "another theme")
    remote = {"steps": [{"step": "installPlugin", "pluginData": {"resource": "wordpress.org/plugins", "slug": "akismet"}}]}
    recipe = recipes.write(bench, "remote", [php("1;")], runtime={"blueprint": remote})
    refused = recipes.run(bench, recipe).expect(1, "wp_codebox_recipe_invalid").json["validation"]["issues"]
    must([(row["code"], row["path"]) for row in refused] == [("network-downloads-disabled", "$.runtime.blueprint.steps[0]")], str(refused))
    opened = recipes.run(bench, recipe, "--dry-run", environment={"WP_CODEBOX_ALLOW_NETWORK_DOWNLOADS": "1"}).expect(0)
    must(opened.json["plan"]["policy"]["network"]["presets"] == ["wporg-readonly"], str(opened))


def test_recipe_for_a_missing_wordpress_version_runs_with_the_nearest_one_only_if_asked_and_gives_a_notice(bench):
    files(bench, "nearest", {"measured/measured.php": plugin("Measured")})
    workloads = [{"id": "sum", "code": "array_sum( range( 1, 100 ) );"}]
    step = {"command": "wordpress.bench", "args": ["plugin-slug=measured", "iterations=2", f"workloads-json={json.dumps(workloads)}"]}
    recipe = recipes.write(bench, "nearest", [step], inputs={"extra_plugins": [{"source": "./measured"}]}, runtime={"wp": "6.8"})
    issues = recipes.run(bench, recipe).expect(1, "wp_codebox_recipe_invalid").json["validation"]["issues"]
    must(issues[0]["path"] == "$.runtime.wp" and "wp-codebox wordpress install 6.8" in issues[0]["message"], str(issues))
    answer = recipes.run(bench, recipe, "--wp-fallback", "nearest").expect(0)
    must(json.loads(recipes.executions(answer, "steps")[0]["stdout"])["schema"] == "wp-codebox/bench-results/v1", str(answer))
    must("asks for WordPress 6.8" in answer.json["notices"][0], str(answer.json["notices"]))
    with open(os.path.join(recipes.verified(bench, answer), "metadata.json"), encoding="utf-8") as file:
        must("asks for WordPress 6.8" in file.read(), "the bundle has no notice")
    trunk = recipes.write(bench, "trunk", [php("1;")], runtime={"wp": "trunk"})
    issues = recipes.run(bench, trunk).expect(1, "wp_codebox_recipe_invalid").json["validation"]["issues"]
    must([row["code"] for row in issues] == ["unsupported-wordpress-version"], str(issues))


def test_multisite_recipe_with_overlay_and_distribution_runs(bench):
    files(bench, "network", {"fake.php": "<?php define( 'BY_FAKE', 'fake' ); file_put_contents( '/tmp/fake.json', '{}' );", "prelude.php": "<?php define( 'BY_PRELUDE', 'prelude' );"})
    bundle = {"schema": "wp-codebox/runtime-overlay-bundle/v1", "id": "base", "files": [{"path": f"{CONTENT}/over.txt", "contents": "over", "mode": "readwrite"}],
              "configPreludes": [{"target": "wp-config.php", "source": "./prelude.php"}]}
    runtime = {"blueprint": {"steps": [{"step": "enableMultisite"}, {"step": "wp-cli", "command": "wp site create --slug=shop"}]},
               "overlays": [{"kind": "runtime-overlay-bundle", "bundle": bundle}]}
    distribution = {"name": "Shop", "wordpress": {"root": "//wordpress/", "config": "wp-config.php"},
                    "serviceFakes": [{"name": "pay", "source": "./fake.php", "load": "pre-bootstrap", "sideEffectsArtifact": "/tmp/fake.json"}]}
    code = f"echo wp_json_encode( array( is_multisite(), count( get_sites() ), BY_PRELUDE, BY_FAKE, file_get_contents( '{CONTENT}/over.txt' ), ini_get( 'precision' ), ini_get( 'serialize_precision' ) ) );"
    settings = {"bootstrapIniEntries": {"precision": 5, "serialize_precision": 7}, "iniEntries": {"precision": 9}}
    recipe = recipes.write(bench, "network", [php(code)], runtime=runtime, distribution=distribution, inputs={"pluginRuntime": {"php": settings}})
    answer = recipes.run(bench, recipe).expect(0)
    must(printed(answer) == [True, 2, "prelude", "fake", "over", "9", "7"], str(answer))
    must([row["status"] for row in answer.json["declaredArtifacts"]] == ["collected"], str(answer.json["declaredArtifacts"]))


def test_recipe_imports_wxr_content_a_database_dump_and_sql_of_a_blueprint(bench):
    dump = """-- A dump of MySQL.
/*!40101 SET NAMES utf8mb4 */;
LOCK TABLES `wp_options` WRITE;
CREATE TABLE `wp_orders` (`id` bigint(20) unsigned NOT NULL AUTO_INCREMENT, `note` varchar(200) NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;
INSERT INTO `wp_orders` (`note`) VALUES ('it''s; one'), ("two -- no comment"); # end
UPDATE wp_options SET option_value = 'From SQL' WHERE option_name = 'blogname';
UNLOCK TABLES;
"""
    files(bench, "seeded", {"dump.sql": dump})
    runtime = {"blueprint": {"steps": [{"step": "resetData"}, {"step": "importThemeStarterContent"}, {"step": "importWxr", "file": {"resource": "literal", "name": "a.xml", "contents": WXR}},
                                       {"step": "runSql", "sql": {"resource": "literal", "name": "b.sql", "contents": "INSERT INTO wp_options (option_name, option_value) VALUES ('by_sql', 'a;b');"}}]}}
    distribution = {"name": "Shop", "wordpress": {"root": "/wordpress"}, "setupArtifacts": [{"name": "dump", "type": "sql", "source": "./dump.sql"}]}
    code = """$page = get_page_by_path( 'parent/child' ); echo wp_json_encode( array( $page->post_title, $page->post_content, get_post_meta( $page->ID, 'colour', true ),
get_the_author_meta( 'login', $page->post_author ), (int) get_comments_number( $page ), term_exists( 'news', 'category' ) ? 1 : 0, (int) wp_count_posts()->publish,
$GLOBALS['wpdb']->get_col( 'SELECT note FROM wp_orders ORDER BY id' ), get_option( 'blogname' ), get_option( 'by_sql' ) ) );"""
    recipe = recipes.write(bench, "seeded", [wp("option get blogname"), php(code)], runtime=runtime, distribution=distribution)
    answer = recipes.run(bench, recipe).expect(0)
    must(printed(answer) == ["Child & co", '<p>It\'s "quoted" \\ text</p>', "red", "ed", 1, 1, 0, ["it's; one", "two -- no comment"], "From SQL", "a;b"], str(answer))
    broken = {"blueprint": {"steps": [{"step": "runSql", "sql": {"resource": "literal", "name": "c.sql", "contents": "SELECT 1; INSERT INTO no_such_table VALUES (1);"}}]}}
    failed = recipes.run(bench, recipes.write(bench, "broken", [php("1;")], runtime=broken))
    must(failed.exit == 1 and "INSERT INTO no_such_table" in recipes.executions(failed, "blueprint")[0]["stderr"], str(failed))

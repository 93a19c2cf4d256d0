"""Recipe inputs: archives, scaffolds, excluded paths, settings, seeds."""

import hashlib
import json
import os
import stat
import subprocess
import zipfile

import recipes
from harness import must
from recipes import check_failed_document, php, wp

PLUGIN = "<?php\n/* Plugin Name: Packed */\nadd_shortcode( 'packed', fn() => 'from the archive' );\n"


def archive(bench, name, rows):
    """Writes a zip beside the recipe of this name; rows are (name, content[, mode])."""
    directory = os.path.join(bench.directory, f"recipe-{name}")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "packed.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for row in rows:
            info = zipfile.ZipInfo(row[0])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (row[2] if len(row) > 2 else stat.S_IFREG | 0o644) << 16
            file.writestr(info, row[1])
    return path


def plugin(**more):
    return {"extra_plugins": [{"source": "./packed.zip", "slug": "packed", **more}]}


def test_recipe_git_setting_selects_history_baseline_or_no_repository_per_mount(bench):
    source = os.path.join(bench.directory, "recipe-git", "work")
    os.makedirs(source, exist_ok=True)
    with open(os.path.join(source, "a.txt"), "w", encoding="utf-8") as file:
        file.write("a\n")

    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "safe.directory=*", *arguments], cwd=source, check=True, env={**recipes.PLAIN, "HOME": "/nonexistent"})
    if not os.path.isdir(os.path.join(source, ".git")):
        git("init", "-q", "-b", "main")
        git("add", "-A")
        git("commit", "-qm", "of the host")
    bench.own(source)
    mounts = [{"source": "./work", "target": f"/workspace/{name}", **more} for name, more in
              (("left-out", {}), ("auto", {"git": "auto"}), ("baseline", {"git": "baseline"}), ("history", {"git": "history"}), ("none", {"git": "none"}))]
    workspaces = [{"target": "/workspace/part", "git": "baseline", "seed": {"type": "directory", "slug": "part", "source": "./work", "excludePaths": ["b.txt"]}},
                  {"target": "/workspace/whole", "git": "history", "seed": {"type": "directory", "slug": "whole", "source": "./work"}},
                  {"target": "/workspace/plain", "git": "none", "seed": {"type": "directory", "slug": "plain", "source": "./work"}},
                  {"git": "baseline", "seed": {"type": "plugin_scaffold", "slug": "made"}},
                  {"seed": {"type": "plugin_scaffold", "slug": "unasked"}}]
    steps = [php("foreach ( array_merge( glob( '/workspace/*' ), array( WP_PLUGIN_DIR . '/made', WP_PLUGIN_DIR . '/unasked' ) ) as $at ) { "
                 "echo basename( $at ), '=', trim( (string) shell_exec( 'git -C ' . $at . ' log --format=%s 2>/dev/null' ) ), \"\\n\"; }")]
    answer = recipes.run(bench, recipes.write(bench, "git", steps, inputs={"mounts": mounts, "workspaces": workspaces})).expect(0)
    baseline, history = "What was mounted", "of the host"
    expected = {"auto": baseline, "baseline": baseline, "history": history, "left-out": baseline, "none": "", "part": baseline, "plain": "", "whole": history, "made": baseline, "unasked": ""}
    found = dict(line.split("=") for line in answer.json["executions"][-1]["stdout"].splitlines())
    must(found == expected, f"{found}")
    # An invalid `git` value is refused with its JSON path before a guest starts.
    bad = recipes.write(bench, "git", steps, inputs={"mounts": [{**mounts[0], "git": "clone"}]})
    issues = check_failed_document(recipes.run(bench, bad).expect(1, "wp_codebox_recipe_invalid"))["validation"]["issues"]
    must([(row["code"], row["path"]) for row in issues] == [("invalid-recipe", "$.inputs.mounts[0].git")], f"{issues}")


def test_zip_archive_is_installed_as_plugin_and_refused_with_a_wrong_sha256(bench):
    path = archive(bench, "zip", [("packed/packed.php", PLUGIN), ("packed/lib/a.php", "<?php\n")])
    with open(path, "rb") as file:
        sha256 = hashlib.sha256(file.read()).hexdigest()
    recipe = recipes.write(bench, "zip", [wp("plugin is-active packed"), php("echo do_shortcode( '[packed]' );")], inputs=plugin(sha256=sha256))
    answer = recipes.run(bench, recipe).expect(0)
    must(answer.json["executions"][-1]["stdout"] == "from the archive", str(answer))
    recipe = recipes.write(bench, "zip", [php("echo 1;")], inputs=plugin(sha256="0" * 64))
    document = check_failed_document(recipes.run(bench, recipe).expect(1, "wp_codebox_recipe_invalid"))
    must(document["validation"]["issues"][0]["code"] == "invalid-source-sha256", str(document["validation"]))


def test_archive_without_sha256_is_refused_if_the_environment_requires_it(bench):
    path = archive(bench, "digest", [("packed/packed.php", PLUGIN)])
    with open(path, "rb") as file:
        sha256 = hashlib.sha256(file.read()).hexdigest()
    required = {"WP_CODEBOX_REQUIRE_SOURCE_SHA256": "1"}
    recipe = recipes.write(bench, "digest", [php("echo 1;")], inputs=plugin())
    document = check_failed_document(recipes.run(bench, recipe, environment=required).expect(1, "wp_codebox_recipe_invalid"))
    issues = [(row["code"], row["path"]) for row in document["validation"]["issues"]]
    must(issues == [("missing-source-sha256", "$.inputs.extra_plugins[0].sha256")], str(issues))
    recipes.run(bench, recipe, environment={"WP_CODEBOX_REQUIRE_SOURCE_SHA256": "0"}).expect(0)
    recipe = recipes.write(bench, "digest", [php("echo 1;")], inputs=plugin(sha256=sha256))
    recipes.run(bench, recipe, environment=required).expect(0)


def test_archive_with_escaping_or_duplicate_paths_a_symlink_or_a_zip_bomb_is_refused(bench):
    """Each archive also contains `good`, a valid plugin file, so only its other file can be the reason for the refusal."""
    good = ("packed/packed.php", PLUGIN)
    hostile = {
        "slip": [good, ("../../../../tmp/codebox-recipe-slip.php", "x")],
        "absolute": [good, ("/tmp/codebox-recipe-slip.php", "x")],
        "link": [good, ("packed/link.php", "/etc/passwd", stat.S_IFLNK | 0o777)],
        "twice": [good, ("packed/PACKED.php", "x")],
        "bomb": [good, ("packed/zeros", b"\0" * (101 * 1024 * 1024))],
    }
    for name, rows in hostile.items():
        archive(bench, name, rows)
        answer = recipes.run(bench, recipes.write(bench, name, [php("echo 1;")], inputs=plugin())).expect(1, "wp_codebox_recipe_invalid")
        issue = check_failed_document(answer)["validation"]["issues"][0]
        must(issue["code"] == "invalid-source" and issue["path"] == "$.inputs.extra_plugins[0].source", f"{name}: {issue}")
    must(not os.path.exists("/tmp/codebox-recipe-slip.php"), "an archive wrote outside")


def test_plugins_activate_in_dependency_order(bench):
    directory = os.path.join(bench.directory, "recipe-order")
    for slug, header in (("first", "Requires Plugins: second"), ("second", "Version: 1")):
        os.makedirs(os.path.join(directory, slug))
        with open(os.path.join(directory, slug, f"{slug}.php"), "w", encoding="utf-8") as file:
            file.write(f"<?php\n/*\n * Plugin Name: {slug}\n * {header}\n */\n")
    inputs = {"extra_plugins": [{"source": "./first"}, {"source": "./second"}]}
    answer = recipes.run(bench, recipes.write(bench, "order", [wp("plugin is-active first")], inputs=inputs)).expect(0)
    activated = json.loads(recipes.executions(answer, "activate")[0]["stdout"])["activated"]
    must(activated == ["second/second.php", "first/first.php"], str(activated))


def test_plugin_that_fails_activation_fails_the_run(bench):
    directory = os.path.join(bench.directory, "recipe-broken", "broken")
    os.makedirs(directory)
    with open(os.path.join(directory, "broken.php"), "w", encoding="utf-8") as file:
        file.write("<?php\n/* Plugin Name: Broken */\nthrow new Exception( 'never' );\n")
    answer = recipes.run(bench, recipes.write(bench, "broken", [php("echo 1;")], inputs={"extra_plugins": [{"source": "./broken"}]}))
    document = check_failed_document(answer.expect(1, "wp_codebox_step_failed"))
    must(document["result"]["failed_phase"] == "activate_plugins", str(document["result"]))
    # A plugin that ends PHP itself with a success response does not count as activated.
    with open(os.path.join(directory, "broken.php"), "w", encoding="utf-8") as file:
        file.write("<?php\n/* Plugin Name: Broken */\nregister_activation_hook( __FILE__, fn() => wp_send_json_success() );\n")
    answer = recipes.run(bench, recipes.write(bench, "broken", [php("echo 1;")], inputs={"extra_plugins": [{"source": "./broken"}]}))
    check_failed_document(answer.expect(1, "wp_codebox_step_failed"))
    must("PHP was ended while the plugin broken/broken.php was activated" in answer.stdout, str(answer))


def test_php_ini_wp_config_and_environment_settings_of_a_recipe_take_effect(bench):
    runtime = {"php": {"memoryLimit": "333M", "maxExecutionTime": 77, "iniEntries": {"precision": 9, "user_agent": "A; b=c"}},
               "wpConfigDefines": {"WP_DEBUG": True, "MY_TEXT": "it's", "MY_NUMBER": 3, "MY_NULL": None}}
    code = "echo wp_json_encode( array( ini_get( 'memory_limit' ), ini_get( 'max_execution_time' ), ini_get( 'precision' ), ini_get( 'user_agent' ), WP_DEBUG, MY_TEXT, MY_NUMBER, MY_NULL, getenv( 'REGION' ) ) );"
    recipe = recipes.write(bench, "settings", [php(code), wp("eval 'echo MY_TEXT;'")], inputs={"pluginRuntime": runtime, "runtimeEnv": {"REGION": "eu"}})
    answer = recipes.run(bench, recipe).expect(0)
    printed = [row["stdout"] for row in answer.json["executions"]]
    must(json.loads(printed[0]) == ["333M", "77", "9", "A; b=c", True, "it's", 3, None, "eu"], printed[0])
    must(printed[1] == "it's", printed[1])


def test_excluded_paths_are_not_mounted_and_changes_in_uncaptured_mounts_are_not_listed(bench):
    """excludePaths are not mounted; a mount with captureArtifacts:false is writable and not captured."""
    directory = os.path.join(bench.directory, "recipe-parts")
    for name in ("work/build/deep/a.txt", "work/lib/build/b.txt", "work/keep.txt", "scratch/a.txt"):
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("x\n")
    bench.own(directory)
    inputs = {"workspaces": [{"target": "/workspace/work", "seed": {"type": "directory", "source": "./work", "excludePaths": ["build/**"]}},
                             {"seed": {"type": "theme_scaffold", "slug": "made-theme"}}],
              "mounts": [{"source": "./scratch", "target": "/workspace/scratch", "captureArtifacts": False}]}
    code = "echo wp_json_encode( array( file_exists( '/workspace/work/build' ), file_exists( '/workspace/work/lib/build/b.txt' ), file_exists( '/workspace/work/keep.txt' ), wp_get_theme( 'made-theme' )->exists() ) ); foreach ( array( 'work', 'scratch' ) as $d ) { file_put_contents( \"/workspace/{$d}/new.txt\", 'y' ); }"
    recipe = recipes.write(bench, "parts", [php(code)], inputs=inputs)
    answer = recipes.run(bench, recipe).expect(0)
    must(json.loads(answer.json["executions"][0]["stdout"]) == [False, True, True, True], str(answer))
    must([row["path"] for row in answer.json["changedFiles"]] == ["/workspace/work/new.txt"], str(answer.json["changedFiles"]))
    must(not os.path.exists(os.path.join(directory, "scratch/new.txt")), "the host's directory changed")


def test_dry_run_reports_a_missing_secret(bench):
    worked = os.path.join(recipes.FIXTURES, "secret", "recipe.json")
    plan = bench.call("recipe", "dry-run", "--recipe", worked, *bench.paths(), "--json").expect(0).json["plan"]
    must(plan["secretEnv"][0]["status"] == "missing", str(plan["secretEnv"]))
    plan = bench.call("recipe", "dry-run", "--recipe", worked, *bench.paths(), "--json",
                      environment={**recipes.PLAIN, "MAILING_KEY": "some-value-4711"}).expect(0)
    must(plan.json["plan"]["secretEnv"][0]["delivery"] == "bridge" and "some-value-4711" not in plan.stdout, plan.stdout)


def test_blueprint_can_enable_multisite(bench):
    steps = [{"step": "enableMultisite"}, {"step": "wp-cli", "command": "site create --slug=two --title='The second'"}]
    archive(bench, "blueprint-network", [("packed/packed.php", PLUGIN)])
    test = "final class NetTest extends PHPUnit\\Framework\\TestCase { public function test_is_one(): void { $this->assertTrue( is_multisite() ); } }"
    tested = {"command": "wordpress.phpunit", "args": ["plugin-slug=packed", "multisite=true", f"code={test}"]}
    workflow = [tested, wp("site list --field=url"), wp("option get blogname --url=http://localhost/two/")]
    recipe = recipes.write(bench, "blueprint-network", workflow, runtime={"blueprint": {"steps": steps}}, inputs=plugin())
    answer = recipes.run(bench, recipe).expect(0)
    listed, name = (row["stdout"] for row in answer.json["executions"][-2:])
    must(listed.split() == ["http://localhost/", "http://localhost/two/"] and name.strip() == "The second", f"{listed} {name}")


def test_site_seed_imports_only_records_within_its_scopes(bench):
    posts = [{"post_type": "page", "post_title": "Draft", "post_status": "draft"}, {"post_type": "post", "post_title": "Post"}]
    posts += [{"post_type": "page", "post_title": f"Page {n}", "post_status": "publish"} for n in range(4)]
    fixture = {"posts": posts, "options": {"blogname": "Seeded", "admin_email": "real@example.com"},
               "users": [{"user_login": "jane.doe", "user_email": "jane@example.com", "role": "author"}]}
    scopes = {"posts": {"postTypes": ["page"], "statuses": ["publish"], "maxRecords": 3}, "options": {"names": ["blogname"]},
              "users": {"roles": ["author"], "anonymize": True, "maxRecords": 2}}
    code = "echo wp_json_encode( array( wp_list_pluck( get_posts( array( 'post_type' => 'any', 'post_status' => 'any', 'numberposts' => 50 ) ), 'post_title' ), get_option( 'blogname' ), get_option( 'admin_email' ), wp_list_pluck( get_users(), 'user_login' ), wp_list_pluck( get_users(), 'user_email' ) ) );"
    recipe = recipes.write(bench, "seed", [php(code)], inputs={"siteSeeds": [{"type": "fixture", "name": "s", "source": "./seed.json", "scopes": scopes}]})
    with open(os.path.join(os.path.dirname(recipe), "seed.json"), "w", encoding="utf-8") as file:
        json.dump(fixture, file)
    answer = recipes.run(bench, recipe).expect(0)
    titles, name, mail, logins, mails = json.loads(answer.json["executions"][-1]["stdout"])
    pages = [title for title in titles if title.startswith("Page ")]
    must(len(pages) == 3 and "Draft" not in titles and "Post" not in titles, f"posts {titles}")
    must(name == "Seeded" and mail == "admin@example.org", f"options {name} {mail}")
    must("seeded-author-1" in logins and "jane.doe" not in logins and "jane@example.com" not in mails, f"users {logins} {mails}")


def test_site_seed_can_create_a_multisite_network(bench):
    sites = [{"domain": "localhost", "path": "/shop/", "title": "The shop"}, {"domain": "localhost", "path": "/blog/"}]
    seed = {"type": "fixture", "name": "s", "source": "./seed.json", "scopes": {"options": {"names": ["blogname"]}},
            "bootstrap": {"multisite": {"enabled": True, "sites": sites}}}
    steps = [wp("site list --fields=url,registered --format=json"), wp("option get blogname --url=http://localhost/shop/")]
    recipe = recipes.write(bench, "network", steps, inputs={"siteSeeds": [seed]})
    with open(os.path.join(os.path.dirname(recipe), "seed.json"), "w", encoding="utf-8") as file:
        json.dump({"options": {"blogname": "Main"}}, file)
    answer = recipes.run(bench, recipe).expect(0)
    listed, shop = (row["stdout"] for row in answer.json["executions"][-2:])
    urls = [row["url"] for row in json.loads(listed)]
    must(urls == ["http://localhost/", "http://localhost/shop/", "http://localhost/blog/"], f"sites {urls}")
    must(shop.strip() == "The shop", f"the shop is called {shop!r}")
    # Control: without multisite WP-CLI cannot list sites.
    del seed["bootstrap"]
    alone = recipes.write(bench, "alone", steps[:1], inputs={"siteSeeds": [seed]})
    with open(os.path.join(os.path.dirname(alone), "seed.json"), "w", encoding="utf-8") as file:
        json.dump({"options": {"blogname": "Main"}}, file)
    recipes.run(bench, alone).expect(1, "wp_codebox_step_failed")

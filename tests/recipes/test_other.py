"""Validation and dry runs, blueprints, boot, and the workspace policy."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import recipes
from harness import must
from recipes import check_failed_document, php


def test_recipe_validate_lists_issues_and_dry_run_prints_the_plan(bench):
    worked = os.path.join(recipes.FIXTURES, "plugin-activation", "recipe.json")
    answer = bench.call("recipe", "validate", "--recipe", worked, *bench.paths(), "--json").expect(0)
    must(answer.json["valid"] is True and answer.json["summary"]["extraPlugins"] == 1, str(answer))
    plan = recipes.run(bench, worked, "--dry-run").expect(0)
    must(plan.json["schema"] == "wp-codebox/recipe-run-dry-run/v1" and plan.json["plan"]["extra_plugins"][0]["pluginFile"] == "greeter/greeter.php", str(plan))
    bad = recipes.write(bench, "bad", [{"command": "wordpress.no-such", "args": []}], inputs={"mounts": [{"source": "./missing", "target": "/etc"}]})
    answer = bench.call("recipe", "validate", "--recipe", bad, *bench.paths(), "--json")
    must(answer.exit == 1 and [row["code"] for row in answer.json["issues"]] == ["unsupported-command", "missing-source"], str(answer))
    document = check_failed_document(recipes.run(bench, bad).expect(1, "wp_codebox_recipe_invalid"))
    must(len(document["validation"]["issues"]) == 2 and document["executions"] == [], str(document))


def test_recipe_with_a_command_outside_the_callers_policy_is_refused(bench):
    recipe = recipes.write(bench, "policy", [php("echo 1;")])
    policy = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["wordpress.wp-cli"], "secrets": "none", "approvals": "never"}
    document = check_failed_document(recipes.run(bench, recipe, "--policy", json.dumps(policy)).expect(1, "wp_codebox_recipe_invalid"))
    must(document["validation"]["issues"][0]["code"] == "runtime-policy-missing-command", str(document["validation"]))
    policy["commands"].append("wordpress.run-php")
    recipes.run(bench, recipe, "--policy", json.dumps(policy)).expect(0)


def test_recipe_steps_accept_a_code_file_a_command_line_in_several_args_and_a_target_command(bench):
    steps = [{"command": "wordpress.run-php", "args": ["code-file=./code.php"]},
             {"command": "wordpress.wp-cli", "args": ["command=wp option", "get", "blogname", "--format=json"]},
             {"command": "command-agent-run", "args": ["command=wordpress.wp-cli", 'args-json=["command=option get blogname"]']},
             {"command": "wordpress.phpunit", "args": ["plugin-slug=packed", "code-file=OwnTest.php", "discovery-only="]}]
    recipe = recipes.write(bench, "words", steps, inputs={"extra_plugins": [{"source": "./packed"}]})
    directory = os.path.dirname(recipe)
    files = {"code.php": "<?php echo basename( __DIR__ ), is_writable( __FILE__ ) ? ' writable' : ' read-only';",
             "OwnTest.php": "<?php\nfinal class OwnTest extends PHPUnit\\Framework\\TestCase { public function test_active(): void { $this->assertTrue( is_plugin_active( 'packed/packed.php' ) ); } }",
             "packed/packed.php": "<?php\n/* Plugin Name: Packed */"}
    os.makedirs(os.path.join(directory, "packed"))
    for name, content in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(content)
    answer = recipes.run(bench, recipe).expect(0)
    printed = [row["stdout"] for row in recipes.executions(answer, "steps")]
    must(printed[0] == "code read-only", printed[0])
    must(json.loads(printed[1]) == "Codebox", printed[1])
    wrapped = json.loads(printed[2])
    must((wrapped["schema"], wrapped["target"]["command"], wrapped["stdout"]) == ("wp-codebox/command-agent-run/v1", "wordpress.wp-cli", "Codebox\n"), printed[2])
    must(json.loads(printed[3])["summary"]["passed"] == 1, printed[3])
    # The policy must list the target command too.
    policy = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"], "secrets": "none", "approvals": "never"}
    alone = recipes.write(bench, "target", steps[2:3])
    document = check_failed_document(recipes.run(bench, alone, "--policy", json.dumps(policy)).expect(1, "wp_codebox_recipe_invalid"))
    must(document["validation"]["issues"][0]["code"] == "runtime-policy-missing-command", str(document["validation"]))
    policy["commands"].append("wordpress.wp-cli")
    recipes.run(bench, alone, "--policy", json.dumps(policy)).expect(0)


def test_blueprint_steps_run_and_a_blueprint_with_an_unsupported_step_is_invalid(bench):
    steps = [{"step": "login"}, {"step": "setSiteOptions", "options": {"blogname": "From a blueprint"}},
             {"step": "defineWpConfigConsts", "consts": {"FROM_BLUEPRINT": "yes"}},
             {"step": "mkdir", "path": "/wordpress/wp-content/made"},
             {"step": "writeFile", "path": "/wordpress/wp-content/made/a.txt", "data": "it's"},
             {"step": "runPHP", "code": "<?php require '/wordpress/wp-load.php'; update_option( 'by_php', 'done' );"},
             {"step": "wp-cli", "command": ["wp", "option", "update", "by_cli", "two words"]}]
    code = "echo wp_json_encode( array( get_option( 'blogname' ), FROM_BLUEPRINT, file_get_contents( WP_CONTENT_DIR . '/made/a.txt' ), get_option( 'by_php' ), get_option( 'by_cli' ) ) );"
    recipe = recipes.write(bench, "blueprint", [php(code)], runtime={"blueprint": {"steps": steps}})
    answer = recipes.run(bench, recipe).expect(0)
    must(json.loads(answer.json["executions"][-1]["stdout"]) == ["From a blueprint", "yes", "it's", "done", "two words"], str(answer))
    file = os.path.join(bench.directory, "blueprint.json")
    for more, status in (([], 0), ([{"step": "installPlugin", "pluginData": {"resource": "wordpress.org/plugins", "slug": "x"}}], 1)):
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"steps": steps + more}, out)
        answer = bench.call("validate-blueprint", file, "--json")
        must(answer.exit == status and answer.json["valid"] is (status == 0), str(answer))
        must(answer.json["schema"] == "wp-codebox/blueprint-validation/v1", str(answer))


def test_blueprint_given_as_json_text_is_read_like_a_file(bench):
    file = os.path.join(bench.directory, "inline.json")
    for blueprint, status in (({"steps": [{"step": "login"}]}, 0), ({"steps": [{"step": "defineSiteUrl", "siteUrl": "https://example.org"}]}, 1)):
        with open(file, "w", encoding="utf-8") as out:
            json.dump(blueprint, out)
        by_file = bench.call("validate-blueprint", "--blueprint", file, "--json").expect(status)
        by_text = bench.call("validate-blueprint", "--blueprint", " " + json.dumps(blueprint), "--json").expect(status)
        must(by_file.json == by_text.json, str(by_text))
    broken = bench.call("validate-blueprint", '{"steps": [', "--json").expect(1)
    must("not valid JSON" in broken.json["issues"][0]["message"], str(broken))


def test_change_outside_writable_roots_is_reported_and_with_strict_fails_the_run(bench):
    directory = os.path.join(bench.directory, "recipe-roots", "work")
    os.makedirs(directory, exist_ok=True)
    bench.own(directory)
    inputs = {"workspaces": [{"target": "/workspace/work", "seed": {"type": "directory", "source": "./work"}}]}
    step = php("mkdir( '/workspace/work/docs' ); file_put_contents( '/workspace/work/docs/a.md', 'x' ); file_put_contents( '/workspace/work/other.txt', 'x' );")
    for roots, strict, status, passed in ((["docs/"], True, 1, False), (["docs/"], False, 0, False), (["docs/", "other.txt"], True, 0, True)):
        policy = {"strict": strict, "writableRoots": roots}
        answer = recipes.run(bench, recipes.write(bench, "roots", [step], inputs=inputs, artifacts={"workspacePolicy": policy})).expect(status)
        result = answer.json["workspacePolicy"]
        must(result["passed"] is passed, str(result))
        if not passed:
            must([row["path"] for row in result["violations"]] == ["/workspace/work/other.txt"], str(result))
        if status:
            must(check_failed_document(answer)["error"]["data"]["reason"] == "workspace-policy-failed", str(answer))


def test_workspace_policy_check_reports_violations_and_refuses_a_repository_with_a_clean_filter(bench):
    root = os.path.join(bench.directory, "checked")
    os.makedirs(os.path.join(root, "docs"))
    for name in ("docs/a.md", "src.php"):
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write("x\n")
    check = ["workspace-policy", "check", "--workspace-root", root, "--json", "--writable-root"]
    good = bench.call(*check, "docs/", "--writable-root", "src.php")
    must(good.exit == 0 and good.json["passed"] is True, str(good))
    bad = bench.call(*check, "docs/")
    must(bad.exit == 1 and [(v["code"], v["path"]) for v in bad.json["violations"]] == [("path-outside-writable-roots", "src.php")], str(bad))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", root]
    subprocess.run([*git, "init", "-q"], check=True)
    with open(os.path.join(root, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("*.log\n")
    with open(os.path.join(root, "docs/a.log"), "w", encoding="utf-8") as file:
        file.write("x\n")
    seen = bench.call(*check, ".", "--git")
    must([(v["code"], v["path"]) for v in seen.json["violations"]] == [("ignored-path", "docs/a.log")], str(seen))
    # A clean filter in the repository's configuration would run a program during `git status`.
    mark = os.path.join(bench.directory, "filter-ran")
    with open(os.path.join(root, ".gitattributes"), "w", encoding="utf-8") as file:
        file.write("* filter=evil\n")
    subprocess.run([*git, "config", "filter.evil.clean", f"touch {mark}; cat"], check=True)
    refused = bench.call(*check, ".", "--git")
    must(refused.exit == 1 and refused.code == "wp_codebox_input_invalid", str(refused))
    must(not os.path.exists(mark), "a program of the repository ran")


def test_boot_command_applies_a_blueprint_and_keeps_the_sandbox_running(bench):
    file = os.path.join(bench.directory, "boot.json")
    place = [*bench.paths(), "--site", bench.site]
    for steps, status in (([{"step": "wp-cli", "command": "option get no_such_option"}], 1), ([{"step": "defineSiteUrl", "siteUrl": "https://example.org"}], 1),
                          ([{"step": "setSiteOptions", "options": {"blogname": "Booted"}}], 0)):
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"steps": steps}, out)
        # The successful blueprint is given as JSON text, the others as files.
        given = file if status else json.dumps({"steps": steps})
        answer = bench.call("boot", *place, "--blueprint", given, "--hold", "2m", "--json").expect(status)
    document = answer.json
    must(document["schema"] == "wp-codebox/boot/v1" and document["success"] is True and document["state"] == "ready", str(answer))
    try:
        seen = bench.call("exec", document["id"], "--site", bench.site, "--state", bench.state, "--", "wp", "option", "get", "blogname")
        must(seen.exit == 0 and seen.stdout == "Booted\n", str(seen))
    finally:
        ended = bench.call("runs", "cancel", document["id"], "--site", bench.site, "--state", bench.state, "--json")
    must(ended.exit == 0, str(ended))


def test_detached_preview_command_prints_its_link_and_exits(bench):
    """The command prints the link and exits; the sandbox stays."""
    place = [*bench.paths(), "--site", bench.site]
    preview = ["--preview-hold", "2m", "--preview-token"]
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    for arguments in (["boot", *place, *mount, "--hold", "2m", *preview], ["run", *place, *mount, "--detach", *preview]):
        answer = bench.call(*arguments).expect(0)
        run = answer.stdout.strip()
        try:
            said = re.search(r"^preview (http://127\.0\.0\.1:\d+/\S*) until \S+$", answer.stderr, re.M)
            must(said, f"no link: {answer}")
            visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with visitor.open(said[1], timeout=60) as page:
                must(page.status == 200 and b"wp-includes" in page.read(), "the link shows no WordPress")
            try:
                urllib.request.urlopen(said[1].split("?")[0], timeout=60)
                must(False, "the preview opens without the token of its link")
            except urllib.error.HTTPError as refused:
                must(refused.code == 401, str(refused))
        finally:
            bench.call("runs", "cancel", run, "--site", bench.site, "--state", bench.state, "--json").expect(0)
    answer = bench.call("boot", *place, *mount, "--hold", "2m", *preview, "--preview-login", "--json").expect(0)
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with visitor.open(answer.json["preview"]["loginUrl"], timeout=60) as page:
        must(page.url.endswith("/wp-admin/") and b"wp-admin-bar" in page.read(), f"signed in to {page.url}")
    bench.call("runs", "cancel", answer.json["id"], "--site", bench.site, "--state", bench.state, "--json").expect(0)
    told = answer.json["preview"]
    must(told["status"] == "open" and told["accessUrl"].startswith(told["url"] + "/?"), str(answer))


def test_recipe_step_output_keeps_json_and_is_truncated_past_the_limit(bench):
    flood = "echo 'first'; fwrite( STDERR, 'why' ); for ( $i = 0; $i < 9216; $i++ ) { echo str_repeat( 'x', 1024 ); } echo 'last';"
    steps = [php("echo json_encode( array_fill( 0, 100000, '0123456' ) );"), php(flood)]
    answer = recipes.run(bench, recipes.write(bench, "flood", steps)).expect(0)
    whole, cut = answer.json["executions"][-2:]
    must(json.loads(whole["stdout"]) == ["0123456"] * 100000 and not any("Truncated" in name for name in whole), str(list(whole)))
    must(cut["stdout"].startswith("firstx") and cut["stdout"].endswith("xlast") and " bytes left out …]" in cut["stdout"], cut["stdout"][:20] + cut["stdout"][-20:])
    must(cut["outputTruncated"] and cut["stdoutTruncated"] and cut["stdoutBytes"] == 9216 * 1024 + 9, str(cut.get("stdoutBytes")))
    must(cut["stderr"] == "why" and "stderrTruncated" not in cut, cut["stderr"])


def test_recipe_run_options_without_an_effect_are_refused_with_their_name_and_timeout_may_be_milliseconds(bench):
    recipe = recipes.write(bench, "options", [php("echo 1;")])
    for flags in (["--host-node-heap-mb", "512"], ["--adversarial-replay", "x"], ["--approve-external-service-writes"]):
        refused = recipes.run(bench, recipe, *flags).expect(1, "wp_codebox_input_invalid")
        must(refused.json["error"]["message"].startswith(flags[0] + ": "), str(refused))
    recipes.run(bench, recipe, "--timeout", "120000").expect(0)
    late = recipes.run(bench, recipes.write(bench, "late", [php("sleep( 60 );")]), "--timeout", "3000")
    must(late.exit == 124 and late.json["outcome"] == "timed_out", str(late))

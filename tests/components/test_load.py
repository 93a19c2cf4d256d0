"""Components (host plugins that the guest loads): mount targets, source rules, and failures of required and optional components."""

import json
import os

from world import HEADER, ability, component, run, shell

from harness import must, tree
from harness.reduced import POLICY, forbid_user_namespaces

READY = "add_filter( 'component_ready', '__return_true' );"
PROBE = {"type": "filter", "name": "component_ready"}


def test_component_is_mounted_readonly_and_its_files_are_not_captured_as_changes(bench):
    one = component(bench, "one", READY, readiness_probe=PROBE)
    before = tree(one["source"])
    look = ("wp plugin is-active one && wp eval 'echo plugin_dir_path( WP_PLUGIN_DIR . \"/one/one.php\" );' && "
            "! echo x 2>/dev/null >/wordpress/wp-content/plugins/one/new.php && ! rm -f /wordpress/wp-content/plugins/one/one.php 2>/dev/null && "
            "! ls /workspace/one 2>/dev/null && echo changed >/workspace/plugin/new.txt")
    ended = run(bench, shell(look), [one]).expect("succeeded")
    must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/new.txt"], str(ended))
    must(tree(one["source"]) == before, "the component's directory on the host changed")
    rows = [json.loads(line) for line in ended.text("files/mounts.jsonl").splitlines()]
    row = rows[1]
    must(row["target"] == "/wordpress/wp-content/plugins/one" and row["mode"] == "readonly" and not row["captured"], str(row))
    must(row["metadata"] == {"kind": "component", "slug": "one", "loadAs": "plugin"}, str(row))
    must(one["source"].encode() not in ended.whole(), "a host path is in the bundle")


def test_run_without_components_mounts_no_component(bench):
    run(bench, shell("! ls /wordpress/wp-content/plugins/one /run/codebox/components.json 2>/dev/null")).expect("no_op")


def test_mu_plugin_components_load_in_request_order(bench):
    first = component(bench, "zz-first", "$GLOBALS['order'][] = 'first';", load_as="mu-plugin", activate=None)
    second = component(bench, "aa-second", "$GLOBALS['order'][] = 'second';", load_as="mu-plugin", activate=None)
    show = "wp eval 'echo \"order \" . implode( \" \", $GLOBALS[\"order\"] ) . \" \" . did_action( \"muplugins_loaded\" );'"
    look = show + " && ls -d /wordpress/wp-content/mu-plugins/contained-runtime/*"
    ended = run(bench, shell(look), [first, second]).expect("no_op")
    must("order first second 1" in ended.output, ended.output)
    ended = run(bench, shell(show), [second, first]).expect("no_op")
    must("order second first 1" in ended.output, ended.output)


def test_directory_made_by_the_guest_is_reported_as_a_change_and_the_mount_point_of_a_component_is_not(bench):
    place = "/wordpress/wp-content/mu-plugins"
    mounts = [{"source": bench.source("must"), "target": place, "mode": "readwrite"}]
    early = component(bench, "early", load_as="mu-plugin", activate=None)
    run(bench, shell(f"test -f {place}/contained-runtime/early/early.php"), [early], mounts=mounts).expect("no_op")
    made = f"mkdir -p {place}/contained-runtime"
    ended = run(bench, shell(f"{made}/own"), [early], mounts=mounts).expect("succeeded")
    must([row["path"] for row in ended.result["changed_files"]] == [f"{place}/contained-runtime/own"], str(ended))
    ended = run(bench, shell(f"{made}/early"), mounts=mounts).expect("succeeded")
    must([row["path"] for row in ended.result["changed_files"]] == [f"{place}/contained-runtime/early"], str(ended))


def test_components_are_active_during_checks(bench):
    one = component(bench, "one", READY, readiness_probe=PROBE)
    checks = ["wp plugin is-active one", "test -f /workspace/plugin/new.txt"]
    ended = run(bench, shell("echo x >/workspace/plugin/new.txt"), [one], checks=checks).expect("succeeded")
    must([check["status"] for check in ended.result["checks"]] == ["passed", "passed"], str(ended))
    run(bench, shell("echo x >/workspace/plugin/new.txt"), checks=checks).expect("partial", "wp_codebox_check_failed")


def test_component_is_refused_unless_it_has_exactly_one_plugin_file_or_a_valid_entry(bench):
    named = component(bench, "named", files={"a.php": HEADER, "b.php": HEADER + READY}, entry="b.php", readiness_probe=PROBE)
    run(bench, shell("true"), [named]).expect("no_op")
    single = component(bench, "single", files={"a.php": "<?php", "other.php": HEADER + READY}, readiness_probe=PROBE)
    run(bench, shell("true"), [single]).expect("no_op")
    two = component(bench, "two", files={"a.php": HEADER, "b.php": HEADER})
    run(bench, shell("true"), [two]).refused("wp_codebox_component_unavailable", "two", "set `entry`")
    outside = component(bench, "outside", files={}, entry="../named/a.php")
    run(bench, shell("true"), [outside]).refused("wp_codebox_input_invalid", "outside")
    link = component(bench, "link", files={})
    os.symlink("/etc/passwd", os.path.join(link["source"], "link.php"))
    run(bench, shell("true"), [link]).refused("wp_codebox_component_unavailable", "link")


def test_run_with_a_broken_required_component_is_refused(bench):
    def broken(slug, code, *said, **fields):
        row = component(bench, slug, code, **fields)
        ended = run(bench, shell("echo ran >/workspace/plugin/new.txt"), [row])
        ended.refused("wp_codebox_component_unavailable", slug, *said)
        must("command-agent-run" not in json.dumps(ended.events), "the agent ran")
    broken("throws", "throw new RuntimeException( 'no such table' );", "no such table")
    broken("parses", "function (", "Unclosed")
    broken("exits", "echo 'bye'; exit( 3 );")
    broken("fatal", "set_error_handler( null ); function wp_insert_post() {}")
    broken("headerless", "", "header", files={"headerless.php": "<?php return;"})
    broken("unready", "", "component_ready", readiness_probe=PROBE)
    broken("no-ability", "", "agent/none", readiness_probe={"type": "ability", "name": "agent/none"})
    broken("mu-throws", "throw new Error( 'mu gone' );", "mu gone", load_as="mu-plugin", activate=None)
    broken("probe-throws", "add_filter( 'component_ready', function () { throw new Error( 'asked too much' ); } );", "asked too much",
           readiness_probe=PROBE)
    # The readiness filter must return true, not a truthy value.
    broken("truthy", "add_filter( 'component_ready', function () { return 1; } );", "int", readiness_probe=PROBE)


def test_broken_optional_component_adds_a_notice(bench):
    bad = component(bench, "bad", "throw new RuntimeException( 'no such table' );", required=False)
    dies = component(bench, "dies", "exit( 3 );", required=False)
    good = component(bench, "good", READY, readiness_probe=PROBE)
    ended = run(bench, shell("wp plugin is-active good && ! wp plugin is-active bad && ! wp plugin is-active dies"), [bad, dies, good]).expect("no_op")
    notices = " ".join(ended.result["notices"])
    must("optional component bad" in notices and "no such table" in notices and "optional component dies" in notices, notices)
    must("good" not in notices, notices)


def test_component_target_that_overlaps_a_mount_is_refused(bench):
    one = component(bench, "plugin")
    source = bench.source("same")
    clash = [{"source": source, "target": "/wordpress/wp-content/plugins/plugin", "mode": "readwrite"}]
    run(bench, shell("true"), [one], mounts=clash).refused("wp_codebox_mount_target_overlap", "component plugin", "overlaps the task's mount")
    other = [{"source": source, "target": "/wordpress/wp-content/plugins/other", "mode": "readwrite"}]
    run(bench, shell("true"), [one], mounts=other).expect("no_op")


def test_component_with_a_denied_or_missing_source_or_an_invalid_or_repeated_slug_is_refused(bench):
    one = component(bench, "one", READY, readiness_probe=PROBE)
    paths = run.__globals__["SupervisorClient"](bench, "true").request["paths"]
    inside = {**paths, "allowed_roots": [bench.directory]}
    run(bench, shell("true"), [one], paths=inside).expect("no_op")
    elsewhere = {**paths, "allowed_roots": [os.path.join(bench.directory, "other")]}
    mounts = {"mounts": []}
    run(bench, shell("true"), [one], paths=elsewhere, **mounts).refused("wp_codebox_mount_denied", "component one", "outside")
    for denied in ("/etc", bench.state, "/"):
        run(bench, shell("true"), [{**one, "source": denied}]).refused("wp_codebox_mount_denied", "component one")
    missing = {**one, "source": one["source"] + "-not-there"}
    run(bench, shell("true"), [missing]).refused("wp_codebox_component_path_missing", "component one")
    file = {**one, "source": os.path.join(one["source"], "one.php")}
    run(bench, shell("true"), [file]).refused("wp_codebox_component_path_missing", "not a directory")
    run(bench, shell("true"), [{**one, "slug": "../one"}]).refused("wp_codebox_input_invalid", "slug")
    run(bench, shell("true"), [one, one]).refused("wp_codebox_input_invalid", "two components")
    closed = {**POLICY, "filesystem": "sandbox", "minimum_isolation": "full"}
    run(bench, shell("true"), [one], policy=closed, mounts=[]).refused("wp_codebox_mount_denied", "component one")


def test_components_load_and_run_an_ability_at_isolation_level_reduced(bench):
    one = component(bench, "one", READY + ability("one/work", "file_put_contents( 'new.txt', 'x' ); return array( 'ok' => true );"), readiness_probe=PROBE)
    mu = component(bench, "base", "define( 'BASE_LOADED', plugins_url( 'x.css', __FILE__ ) );", load_as="mu-plugin", activate=None)
    checks = ["wp plugin is-active one", "wp eval 'exit( BASE_LOADED ? 0 : 1 );'"]
    options = {"spawn": {"preexec_fn": forbid_user_namespaces}, "policy": POLICY, "checks": checks}
    ended = run(bench, {"kind": "ability", "ability": "one/work", "input": {}}, [mu, one], **options).expect("succeeded")
    must(ended.result["isolation"]["level"] == "reduced", str(ended))
    must(ended.answered() == {"status": "completed", "result": {"ok": True}}, str(ended.answered()))
    must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/new.txt"], str(ended))
    write = 'set -e; cd "$CODEBOX_ROOT/wordpress/wp-content/plugins/one"; ! echo x 2>/dev/null >new.php; ! echo x 2>/dev/null >>one.php'
    run(bench, shell(write), [one], **{**options, "checks": []}).expect("no_op")

"""Services of held sandboxes and of runs with an agent: data in snapshots, one database for each guest, the check guest."""

import json
import os

import pytest
from sandbox import Sandbox, call, remove_snapshots

from harness import must


def on_mariadb(bench):
    """Creates a held sandbox whose WordPress is on MariaDB."""
    return Sandbox(bench, None, "10m", "null", "--service", "mysql")


@pytest.fixture(autouse=True)
def server():
    must(os.path.exists("/usr/sbin/mariadbd"), "mariadbd is not installed; run: apt-get install mariadb-server")


def ended(box):
    call(box.bench, "destroy", box.id)


def test_snapshot_of_a_sandbox_on_mariadb_restores_its_data_also_after_the_server_was_killed(bench):
    remove_snapshots(bench)
    box = on_mariadb(bench)
    try:
        must("MariaDB" in box.wp("db query 'SELECT VERSION()' --skip-column-names"), "WordPress is not on MariaDB")
        box.wp("option update state before")
        box.snapshot("good")
        # The server runs again after the snapshot, and what is written then is not in the snapshot.
        must(box.wp("option get state") == "before\n", "the server does not run after the snapshot")
        box.wp("option update state after")
        must(box.wp("option get state") == "after\n", "control: the change is visible")
        box.do("restore", "good").expect(0)
        must(box.wp("option get state") == "before\n", "the data did not come back")
        # A killed server loses no committed row: a guest from the snapshot recovers, and the sandbox is usable again.
        kill = "p=$(cat /run/mysqld/mysqld.pid); kill -9 $p; while kill -0 $p 2>/dev/null; do :; done"
        box.ask({"type": "command", "call": {"command": "command-agent-run", "args": ["command=sh", "args-json=" + json.dumps(["-c", kill])]}})
        reply = box.ask({"type": "command", "call": {"command": "wordpress.wp-cli", "args": ["command=option get state"]}})
        must("wp_codebox_service_failed" in json.dumps(reply), f"a command runs without its database: {reply}")
        must(box.do("snapshot", "--name", "bad").exit != 0, "a snapshot of a killed server is stored")
        box.do("restore", "good").expect(0)
        must(box.wp("option get state") == "before\n", "the sandbox is not usable after the restore")
    finally:
        ended(box)
        remove_snapshots(bench)


def test_two_sandboxes_on_mariadb_at_once_do_not_see_each_others_data(bench):
    one, other = on_mariadb(bench), on_mariadb(bench)
    try:
        one.wp("option update mine one")
        other.wp("option update mine other")
        must((one.wp("option get mine"), other.wp("option get mine")) == ("one\n", "other\n"), "the data is shared")
    finally:
        ended(one)
        ended(other)


def test_agent_guest_and_check_guest_have_separate_databases(bench):
    source = bench.source("service-agent")
    add = 'wp option update made-by agent; echo "<?php // changed" > plugin.php'
    answer = bench.call("run", "--service", "mysql", "--mount", f"{source}:/workspace/p", "--goal", "Change it", "--agent-command", f"sh -ec '{add}'",
                        "--check", "sh -ec 'wp db query \"SELECT VERSION()\" --skip-column-names | grep MariaDB'", "--check", "sh -ec '! wp option get made-by'",
                        "--check", 'sh -ec "test $MYSQL_HOST:$MYSQL_TCP_PORT = 127.0.0.1:3306"',
                        *bench.paths(), "--site", bench.site, "--json").expect(0)
    must([row["status"] for row in answer.result["checks"]] == ["passed"] * 3, f"{answer.result['checks']}")
    must([row["phase"] for row in answer.result["services"]] == ["work", "check"], f"{answer.result['services']}")
    must([row["relativePath"] for row in answer.result["changed_files"]] == ["plugin.php"], f"{answer.result['changed_files']}")

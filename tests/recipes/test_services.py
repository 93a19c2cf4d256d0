"""Services of a guest: MariaDB under WordPress, the HTTP responder, mail; their outputs, end, snapshots and limits."""

import json
import os
import shutil
import subprocess

import pytest
import recipes
from harness import must
from harness.reduced import policy, run_without_userns
from recipes import php, wp

DATABASE = {"id": "db", "kind": "mysql", "configuration": {"provider": "native", "engine": "mariadb"},
            "outputs": {"host": "DB_A", "port": ["DB_P", "DB_Q"], "username": "DB_U", "password": "DB_W", "database": "DB_D", "url": "DB_L"}}
MISSING = "mariadbd is not installed; run: apt-get install mariadb-server"

#: PHP that connects to the database with the variables that `outputs` of the service names.
CONNECT = "$db = new mysqli( getenv( 'DB_A' ), getenv( 'DB_U' ), getenv( 'DB_W' ), getenv( 'DB_D' ), (int) getenv( 'DB_Q' ) );"

#: PHP that kills the server and waits until it accepts no connection.
KILL = ("posix_kill( (int) file_get_contents( '/run/mysqld/mysqld.pid' ), SIGKILL );"
        "for ( $n = 0; $n < 600 && @fsockopen( '127.0.0.1', 3306 ); $n++ ) { usleep( 100000 ); } echo 'killed';")


def with_services(bench, name, steps, services=(DATABASE,), **sections):
    inputs = {"services": list(services), **sections.pop("inputs", {})}
    return recipes.run(bench, recipes.write(bench, name, steps, inputs=inputs, **sections))


def printed(answer):
    return [row["stdout"] for row in answer.json["executions"]]


@pytest.fixture(scope="module", autouse=True)
def server():
    must(os.path.exists("/usr/sbin/mariadbd"), MISSING)


COUNT = "echo $wpdb->get_var( \"SELECT COUNT(*) FROM $wpdb->options WHERE option_name = 'undone'\" );"
INSERT = "global $wpdb; $wpdb->query( 'START TRANSACTION' ); $wpdb->insert( $wpdb->options, array( 'option_name' => 'undone', 'option_value' => 'x' ) );"
#: Steps of the run with MariaDB that the cases of the group `mariadb` read, because creating the database takes seconds.
STEPS = {
    "version": php("global $wpdb; echo $wpdb->get_var( 'SELECT VERSION()' );"),
    "engine": php("global $wpdb; echo $wpdb->get_var( \"SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = '$wpdb->posts'\" ), ' ', get_class( $wpdb );"),
    "rolled back": php(INSERT + "$wpdb->query( 'ROLLBACK' );" + COUNT),
    # Control: the same row stays after a commit.
    "committed": php(INSERT + "$wpdb->query( 'COMMIT' );" + COUNT),
    "posts": wp("post list --field=post_title"),
    "outputs": php(CONNECT + "echo $db->query( 'SELECT CURRENT_USER()' )->fetch_row()[0], ' ', getenv( 'DB_A' ), ':', getenv( 'DB_P' ), ' ', getenv( 'DB_D' );"),
    "wrong password": php("mysqli_report( MYSQLI_REPORT_OFF ); $db = @new mysqli( '127.0.0.1', 'root', 'wrong' ); echo $db->connect_errno;"),
    # Prints the password with its letters replaced, so that the redaction misses it and the test can restore it.
    "arguments": php("$all = ''; foreach ( glob( '/proc/[0-9]*/cmdline' ) as $file ) { $all .= file_get_contents( $file ); }"
                     "echo strtr( getenv( 'DB_W' ), '0123456789abcdef', 'ghijklmnopqrstuv' ), ' ', substr_count( $all, getenv( 'DB_W' ) ), ' ', substr_count( $all, 'mariadbd' );"),
    "password": php("echo getenv( 'DB_W' );"),
    "kills another program": php("$p = proc_open( array( 'sleep', '600' ), array(), $pipes ); proc_terminate( $p, SIGKILL ); proc_close( $p ); echo 'killed';"),
    "last": php("echo 'reached';"),
}


@pytest.fixture(scope="module")
def on_mariadb(bench):
    """Runs STEPS; returns the answer, and what each step printed."""
    answer = with_services(bench, "mariadb", list(STEPS.values())).expect(0)
    return answer, dict(zip(STEPS, printed(answer), strict=True))


@pytest.mark.xdist_group("mariadb")
def test_wordpress_runs_on_mariadb_whose_transactions_roll_back(bench, on_mariadb):
    answer, said = on_mariadb
    must("MariaDB" in said["version"], said["version"])
    must(said["engine"] == "InnoDB wpdb", said["engine"])
    must((said["rolled back"], said["committed"]) == ("0", "1"), f"{said}")
    must("Hello world!" in said["posts"], said["posts"])
    rows = answer.json["managedRuntimeServices"]
    must([(row["id"], row["engine"], row["version"], row["phase"]) for row in rows] == [("db", "mariadb", said["version"], "work")], f"{rows}")
    directory = recipes.verified(bench, answer)
    with open(os.path.join(directory, "files/runtime-evidence/services.jsonl"), encoding="utf-8") as file:
        must([json.loads(line) for line in file] == rows, "the bundle has other services than the result")
    must(not answer.json["changedFiles"], "the database is in the patch")
    # Control: without the service, WordPress is on SQLite.
    answer = recipes.run(bench, recipes.write(bench, "sqlite", [php("global $wpdb; echo get_class( $wpdb );")])).expect(0)
    must(printed(answer) != ["wpdb"] and "managedRuntimeServices" not in answer.json, f"{printed(answer)}")


@pytest.mark.xdist_group("mariadb")
def test_connection_data_of_the_database_service_connects_and_a_wrong_password_does_not(bench, on_mariadb):
    said = on_mariadb[1]
    must((said["outputs"], said["wrong password"]) == ("root@127.0.0.1 127.0.0.1:3306 wordpress", "1045"), "the outputs do not connect")
    plain = {**DATABASE, "configuration": {"rootAuthentication": "empty-password"}}
    steps = [php(CONNECT + "echo '<', getenv( 'DB_W' ), '>', $db->query( 'SELECT CURRENT_USER()' )->fetch_row()[0];")]
    must(printed(with_services(bench, "empty", steps, (plain,)).expect(0)) == ["<>root@127.0.0.1"], "the password is not empty")


@pytest.mark.xdist_group("mariadb")
def test_password_of_the_database_is_in_no_log_bundle_or_argument(bench, on_mariadb):
    answer, said = on_mariadb
    veiled, in_arguments, servers = said["arguments"].split()
    password = veiled.translate(str.maketrans("ghijklmnopqrstuv", "0123456789abcdef"))
    must(len(password) == 64 and in_arguments == "0" and int(servers) > 0, said["arguments"])
    must(said["password"].startswith("[REDACTED"), "the password is printed")
    directory = recipes.verified(bench, answer)
    run = os.path.join(bench.state, "sites", bench.site, "runs", answer.json["run"]["runId"])

    def files_with(text):
        found = subprocess.run(["grep", "-rlF", text, directory, run], capture_output=True, check=False, text=True)
        return found.stdout.split()

    must(files_with(veiled), "control: the veiled password is in the bundle")
    must(not files_with(password) and password not in answer.stdout, "the password is in a file of the run")


@pytest.mark.xdist_group("mariadb")
def test_killed_database_fails_its_step_and_ends_the_run(bench, on_mariadb):
    steps = {"steps": [php("echo 'before';"), {**php(KILL), "allowFailure": True}, php("echo 'not reached';")], "after": [php("echo 'no';")]}
    answer = with_services(bench, "killed", steps).expect(1, "wp_codebox_service_failed")
    document = recipes.check_failed_document(answer)
    must(printed(answer) == ["before", "killed"], f"{printed(answer)}")
    must("service db (mysql) has ended" in document["error"]["message"], f"{document['error']}")
    must(document["stepFailures"][0]["index"] == 1 or "steps[1]" in json.dumps(document["stepFailures"]), f"{document['stepFailures']}")
    # Control: a killed program that is no service does not make the step fail.
    said = on_mariadb[1]
    must((said["kills another program"], said["last"]) == ("killed", "reached"), f"{said}")


def test_checkpoint_restore_brings_back_changed_and_dropped_database_tables(bench):
    def checkpoint(operation):
        return {"command": f"wp-codebox.checkpoint-{operation}", "args": ["name=a"]}

    root = php(CONNECT + "$db->query( 'CREATE TABLE mine ( a INT ) ENGINE=InnoDB' ); $db->query( 'INSERT INTO mine VALUES ( 7 )' );")
    steps = [wp("option update state before"), root, checkpoint("create"), wp("option get state"),
             wp("option update state after"), php(CONNECT + "$db->query( 'DROP TABLE mine' );"), wp("option get state"),
             checkpoint("restore"), wp("option get state"), php(CONNECT + "echo $db->query( 'SELECT a FROM mine' )->fetch_row()[0];")]
    answer = with_services(bench, "checkpoint", steps).expect(0)
    all_printed = printed(answer)
    must([all_printed[at] for at in (3, 6, 8, 9)] == ["before\n", "after\n", "before\n", "7"], f"{all_printed}")


def test_memory_of_the_database_counts_against_the_limit_of_the_run(bench):
    rows = ("global $wpdb; $wpdb->query( 'SET max_heap_table_size = 1073741824' ); $wpdb->query( 'CREATE TEMPORARY TABLE big ( a BINARY(250) ) ENGINE=MEMORY' );"
            "$wpdb->query( \"INSERT INTO big SELECT 'x' FROM seq_1_to_1200000\" ); echo $wpdb->get_var( 'SELECT COUNT(*) FROM big' );")

    def run(memory, then):
        return bench.call("run", "--service", "mysql", "--memory", memory, "--command", "wordpress.run-php", "--arg", f"code={rows} {then}",
                          *bench.paths(), "--site", bench.site, "--json")

    # The supervisor compares the memory with the limit every 100 ms, so the table is kept until that ends the run.
    answer = run("224M", "sleep( 60 );").expect(1)
    must(answer.code in ("wp_codebox_memory_limit", "wp_codebox_service_failed"), f"{answer}")
    answer = run("1G", "").expect(0)
    must("1200000" in json.dumps(answer.result["transcript"]), f"{answer}")


def test_http_service_answers_and_records_requests(bench):
    service = {"id": "api", "kind": "http", "configuration": {"responseStatus": 503, "responseBody": "{\"busy\":true}"}, "outputs": {"url": "API_URL"}}
    second = {"id": "other", "kind": "http", "outputs": {"url": "OTHER_URL"}}
    request = ("$r = wp_remote_post( getenv( 'API_URL' ) . '/orders?a=1', array( 'body' => 'paid', 'headers' => array( 'X-Shop' => '7' ) ) );"
               "echo wp_remote_retrieve_response_code( $r ), wp_remote_retrieve_body( $r );")
    other = "echo wp_remote_retrieve_response_code( wp_remote_get( getenv( 'OTHER_URL' ) ) );"
    answer = with_services(bench, "http", [php(request), php(other)], (service, second)).expect(0)
    must(printed(answer) == ["503{\"busy\":true}", "200"], f"{printed(answer)}")
    with open(os.path.join(recipes.verified(bench, answer), "files/runtime-evidence/http-requests.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    seen = [(row["service"], row["phase"], row["method"], row["target"], row["body"]) for row in rows]
    must(seen == [("api", "work", "POST", "/orders?a=1", "paid"), ("other", "work", "GET", "/", "")], f"{seen}")
    must(rows[0]["headers"]["x-shop"] == "7", f"{rows[0]}")


def test_mail_sent_to_the_smtp_service_is_listed_by_inspect_until_reset(bench):
    service = {"id": "outbox", "kind": "smtp", "outputs": {"host": "SMTP_H", "port": "SMTP_P"}}
    send = ("add_action( 'phpmailer_init', function ( $mail ) { $mail->isSMTP(); $mail->Host = getenv( 'SMTP_H' ); $mail->Port = (int) getenv( 'SMTP_P' ); } );"
            "echo wp_mail( 'buyer@example.org', 'Your order', 'Thanks' ) ? 'sent' : 'lost';")

    def inspect(*more):
        return {"command": "host/smtp.inspect", "args": ["service=outbox", *more]}

    steps = [php(send), inspect(), {"command": "host/smtp.reset", "args": ["service=outbox"]}, inspect()]
    answer = with_services(bench, "smtp", steps, (service,)).expect(0)
    sent, before, _, after = printed(answer)
    before, after = json.loads(before), json.loads(after)
    must(sent == "sent" and before["service"] == "outbox" and before["messages"][0]["subject"] == "Your order", f"{sent} {before}")
    must((before["matched"], after["matched"]) == (1, 0), f"{before} {after}")
    path = recipes.write(bench, "smtp-unknown", [{"command": "host/smtp.inspect", "args": ["service=inbox"]}], inputs={"services": [service]})
    answer = recipes.run(bench, path).expect(1)
    must([row["code"] for row in answer.json["validation"]["issues"]] == ["invalid-reference"], f"{answer}")


def test_redis_data_is_restored_from_a_checkpoint_or_the_error_names_the_missing_package(bench):
    def say(line):
        return php(f"$s = fsockopen( getenv( 'REDIS_A' ), (int) getenv( 'REDIS_P' ) ); fwrite( $s, \"{line}\\r\\n\" ); echo trim( fgets( $s ) ), ' ', trim( fgets( $s ) ?: '' );")

    def checkpoint(operation):
        return {"command": f"wp-codebox.checkpoint-{operation}", "args": ["name=a"]}

    service = {"id": "cache", "kind": "redis", "outputs": {"host": "REDIS_A", "port": "REDIS_P"}}
    steps = [say("SET a before\\r\\nPING"), checkpoint("create"), say("SET a after\\r\\nGET a"), checkpoint("restore"), say("GET a")]
    answer = with_services(bench, "redis", steps, (service,))
    if os.path.exists("/usr/bin/redis-server"):
        answer.expect(0)
        must([printed(answer)[at] for at in (0, 2, 4)] == ["+OK +PONG", "+OK $5", "$6 before"], f"{printed(answer)}")
        must(answer.json["managedRuntimeServices"][0]["version"][0].isdigit(), f"{answer.json['managedRuntimeServices']}")
    else:
        issue = answer.expect(1).json["validation"]["issues"][0]
        must(issue["code"] == "unsupported-runtime-service-kind" and "install the package redis-server" in issue["message"], f"{issue}")


def test_phpunit_of_a_plugin_runs_on_mariadb_only_with_a_mysql_service(bench):
    source = bench.source("tested")
    os.makedirs(os.path.join(source, "tests"), exist_ok=True)
    with open(os.path.join(source, "tests", "DbTest.php"), "w", encoding="utf-8") as file:
        file.write("<?php\nclass DbTest extends PHPUnit\\Framework\\TestCase {\n"
                   "\tfunction test_server() { $this->assertStringContainsString( 'MariaDB', $GLOBALS['wpdb']->db_server_info() ); }\n}\n")
    bench.own(source)
    inputs = {"mounts": [{"source": source, "target": "/wordpress/wp-content/plugins/tested"}]}

    def run(name, services, database):
        step = {"command": "wordpress.phpunit", "args": ["plugin-slug=tested", f"database-type={database}"]}
        return with_services(bench, name, [step], services, inputs=inputs)

    result = json.loads(printed(run("unit", (DATABASE,), "mysql").expect(0))[0])
    must(result["status"] == "passed" and result["summary"]["passed"] == 1, f"{result}")
    for name, services, database, why in (("unit-none", (), "mysql", "SQLite only"), ("unit-other", (DATABASE,), "sqlite", "on MariaDB")):
        answer = run(name, services, database).expect(1, "wp_codebox_step_failed")
        must(why in answer.json["error"]["message"], f"{answer}")


def test_services_are_refused_at_isolation_level_reduced(bench):
    asked = ["--command", "wordpress.wp-cli", "--arg", "command=option get home", *policy()]
    refused = run_without_userns(bench, "--service", "mysql", *asked)
    must(refused.exit == 125 and "wp_codebox_isolation_unavailable" in refused.stdout, f"{refused}")
    must("services need isolation level full" in refused.stdout, f"{refused}")
    # Controls: the same run without the service, and with it where user namespaces are allowed.
    run_without_userns(bench, *asked).expect(0)
    bench.run("--service", "mysql", *asked).expect(0)


def test_database_for_a_php_without_mysqli_is_refused_with_the_name_of_the_package_before_a_guest_starts(bench):
    must(os.geteuid() == 0, "this case mounts a directory over PHP's configuration in a mount namespace; run it as root")
    scanned = subprocess.run([bench.environment["CODEBOX_PHP"], "-r", "echo PHP_CONFIG_FILE_SCAN_DIR;"], capture_output=True, text=True, check=True).stdout
    few = os.path.join(bench.directory, "few-extensions")
    shutil.copytree(scanned, few)
    for name in os.listdir(few):
        if "mysql" in name:
            os.unlink(os.path.join(few, name))
    asked = ["--command", "wordpress.run-php", "--arg", "code=echo 'started';"]
    mount = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', few, scanned]

    def run(*services):
        arguments = ["run", *services, *asked, *bench.paths(), "--site", bench.site, "--json"]
        process = subprocess.Popen([*mount, bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        return bench.finish(arguments, process)

    refused = run("--service", "mysql")
    error = refused.json["error"]
    version = subprocess.run([bench.environment["CODEBOX_PHP"], "-r", "echo PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;"], capture_output=True, text=True, check=True).stdout
    must(error["code"] == "wp_codebox_sandbox_start_failed" and f"apt-get install php{version}-mysql" in error["message"] and "mysqli" in error["message"], f"{refused}")
    must("started" not in refused.stdout and "<style" not in refused.stdout, f"{refused}")
    # Controls: the same PHP without a database, and the PHP with all extensions with one.
    run().expect(0)
    bench.run("--service", "mysql", *asked).expect(0)

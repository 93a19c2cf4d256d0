"""Verdicts of checks: a table of check programs and of what they do, run by `wp-codebox test` and as `--check` of a run.

PHPUnit, phpcs, npm and node are real. Composer, PHPStan and Jest are stand-ins that print what the real programs print.
"""

import json
import os
import shutil

import pytest

from harness import must

TEST = "<?php\nfinal class {name} extends PHPUnit\\Framework\\TestCase {{\n\tpublic function test_first(): void {{ self::assertTrue( true ); }}\n\tpublic function test_last(): void {{ {body} }}\n}}\n"


def case(name, body):
    return TEST.format(name=name, body=body)


COMPOSER = """#!/bin/sh
# Stands for `composer NAME`: prints the command of the script to standard error and runs it with a shell.
case $1 in
pass) line='phpunit t/pass' ;; fail) line='phpunit t/fail' ;; early) line='phpunit t/early' ;; none) line='phpunit --filter none t/pass' ;;
empty) exit 0 ;; *) echo "Command \\"$1\\" is not defined." >&2; exit 1 ;;
esac
echo "> $line" >&2
exec sh -c "$line"
"""
PHPSTAN = """#!/bin/sh
# Stands for PHPStan 1, which ends with 0 if it finds no file.
case $2 in
pass) echo ' [OK] No errors' ;; fail) echo ' [ERROR] Found 1 error'; exit 1 ;; none) echo ' ! [NOTE] No files found to analyse.' ;;
esac
"""
JEST = "#!/bin/sh\n# Stands for `jest --passWithNoTests`.\necho 'No tests found, exiting with code 0'\n"
FILES = {
    "table.php": "<?php\n/*\nPlugin Name: Table\n*/\ndefined( 'ABSPATH' ) || exit;\n",
    "t/pass/PassTest.php": case("PassTest", "self::assertTrue( true );"),
    "t/fail/FailTest.php": case("FailTest", "self::assertTrue( false );"),
    "t/early/EarlyTest.php": case("EarlyTest", "exit( 0 );"),
    "t/fatal/FatalTest.php": case("FatalTest", "eval( 'class A {} class A {}' );"),
    "t/risky/RiskyTest.php": case("RiskyTest", ""),
    "t/warning/WarningTest.php": case("WarningTest", "$this->addWarning( 'old' );"),
    "t/nested/NestedTest.php": case("NestedTest", "exec( 'phpunit t/fail', $lines, $status ); self::assertSame( 1, $status );"),
    "logged.xml": '<phpunit><logging><junit outputFile="own.xml"/></logging><testsuites><testsuite name="x"><directory>t/pass</directory></testsuite></testsuites></phpunit>\n',
    "has-log.php": "<?php exit( is_file( 'own.xml' ) && is_file( 'named.xml' ) ? 0 : 1 );\n",
    "run-tests.sh": "#!/bin/sh\nphpunit \"$1\"\necho finished\n",
    "exit.php": "<?php exit( 0 );\n",
    "src/good.php": "<?php\n\n$good = 1;\n",
    "bad/bad.php": "<?php if(1){ $bad=1; }\n",
    "none/readme.txt": "",
    "vendor/bin/composer": COMPOSER,
    "vendor/bin/phpstan": PHPSTAN,
    "node_modules/.bin/jest": JEST,
    "package.json": json.dumps({"name": "table", "scripts": {"test": "node --test js/pass.test.js", "fails": "node --test js/fail.test.js", "early": "phpunit t/early", "none": "jest", "gone": "no-such-program"}}),
    "js/pass.test.js": "require( 'node:test' )( 'passes', () => {} );\n",
    "js/fail.test.js": "require( 'node:test' )( 'fails', () => { throw new Error( 'no' ); } );\n",
}
# Command line, status, number of passed tests if known, and a part of the reason.
TABLE = [
    ("phpunit t/pass", "passed", 2, None),
    ("vendor/bin/phpunit t/pass", "passed", 2, None),
    ("php vendor/bin/phpunit t/pass", "passed", 2, None),
    ("sh -c 'phpunit t/pass && phpunit --filter none t/pass'", "passed", 2, None),
    ("phpunit --version", "passed", None, None),
    ("phpunit --list-tests t/pass", "passed", None, None),
    ("phpunit t/fail", "failed", 1, "1 of 2 tests failed"),
    ("phpunit t/early", "failed", 1, "PHPUnit ended in EarlyTest::test_last before its log was complete"),
    ("vendor/bin/phpunit t/early", "failed", 1, "in EarlyTest::test_last"),
    ("php vendor/bin/phpunit t/early", "failed", 1, "in EarlyTest::test_last"),
    ("sh run-tests.sh t/early", "failed", 1, "in EarlyTest::test_last"),
    ("sh run-tests.sh t/fail", "failed", 1, "1 of 2 tests failed"),
    ("sh run-tests.sh t/pass", "passed", 2, None),
    ("phpunit t/fatal", "failed", 1, "in FatalTest::test_last"),
    ("phpunit --bootstrap table.php t/pass", "failed", 0, "before its log was complete"),
    ("phpunit --filter none t/pass", "failed", 0, "no tests ran"),
    ("phpunit none", "failed", 0, "no tests ran"),
    ("phpunit t/risky", "passed", 2, None),
    ("phpunit --fail-on-risky t/risky", "failed", 2, None),
    ("phpunit t/warning", "passed", 2, None),
    ("phpunit --fail-on-warning t/warning", "failed", 2, None),
    ("phpunit t/nested", "passed", 2, None),
    ("phpunit --log-junit named.xml t/pass", "passed", 2, None),
    ("phpunit --log-junit named.xml t/early", "failed", 1, "in EarlyTest::test_last"),
    ("phpunit -c logged.xml", "passed", 2, None),
    ("phpunit --log-junit=named.xml t/pass", "passed", 2, None),
    ("php has-log.php", "passed", None, None),
    ("vendor/bin/no-such-program", "error", None, "not found in the sandbox"),
    ("vendor/bin/composer pass", "passed", 2, None),
    ("vendor/bin/composer fail", "failed", 1, "1 of 2 tests failed"),
    ("vendor/bin/composer early", "failed", 1, "in EarlyTest::test_last"),
    ("vendor/bin/composer none", "failed", 0, "no tests ran"),
    ("vendor/bin/composer empty", "passed", None, None),
    ("vendor/bin/composer missing", "failed", None, None),
    ("phpcs --standard=PSR12 src", "passed", None, None),
    ("phpcs --standard=PSR12 --parallel=2 src", "passed", None, None),
    ("phpcs --version", "passed", None, None),
    ("phpcs --standard=PSR12 bad", "failed", None, None),
    ("phpcs --standard=PSR12 none", "failed", None, "phpcs checked 0 files"),
    ("phpcs --standard=PSR12 --bootstrap=exit.php src", "failed", None, "phpcs checked 0 files"),
    ("vendor/bin/phpstan analyse pass", "passed", None, None),
    ("vendor/bin/phpstan analyse fail", "failed", None, None),
    ("vendor/bin/phpstan analyse none", "failed", None, "checked nothing"),
    ("npm test", "passed", None, None),
    ("npm run fails", "failed", None, None),
    ("npm run early", "failed", 1, "in EarlyTest::test_last"),
    ("npm run none", "failed", None, "checked nothing"),
    ("npm run gone", "failed", None, None),
    ("npm run missing", "failed", None, None),
    ("php -l table.php", "passed", None, None),
    ("php exit.php", "passed", None, None),
    ("false", "failed", None, None),
    ("true", "passed", None, None),
    ("no-such-program", "error", None, "not found in the sandbox"),
]


@pytest.fixture
def table(developer):
    root = os.path.join(developer.home, "table")
    for path, text in FILES.items():
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
    os.symlink("/usr/bin/phpunit", os.path.join(root, "vendor/bin/phpunit"))
    developer.own(root)
    yield root
    shutil.rmtree(root)


def differences(rows):
    """Compares rows of command line, status, tests and reason with the table."""
    wrong = []
    must(len(rows) == len(TABLE), f"{len(rows)} checks")
    for (line, status, passed, reason), (name, seen, tests, said) in zip(TABLE, rows):
        fits = name == line and seen == status and (tests or {}).get("passed") == passed and (reason is None or reason in (said or ""))
        if not fits:
            wrong.append(f"{line}: expected {status}, {passed}, {reason!r}; got {name} {seen}, {tests}, {said!r}")
    return wrong


def test_verdict_of_each_check_program_in_each_situation_by_the_test_command(developer, table):
    done = developer.call("test", "--json", *(line for line, *_ in TABLE), cwd=table, check=1)
    document = json.loads(done.stdout)
    rows = [(row["name"], row["status"], row.get("summary"), row.get("reason")) for row in document["suites"]]
    wrong = differences(rows)
    must(not wrong, "\n".join(wrong))
    summary = document["summary"]
    must(document["schema"] == "wp-codebox/test-results/v1" and document["status"] == "failed" and summary["total"] == len(TABLE), str(summary))
    codes = {row["name"]: row.get("exitCode") for row in document["suites"]}
    must(codes["phpunit t/early"] == 0 and codes["phpunit t/fail"] == 1 and codes["no-such-program"] is None, str(codes))
    must(all(row["durationMs"] >= 0 for row in document["suites"]), done.stdout)


def test_verdict_of_each_check_program_in_each_situation_as_checks_of_a_run(developer, table):
    flags = [word for line, *_ in TABLE for word in ("--check", line)]
    done = developer.call("Add a line", "--agent-command", "sh -c 'echo x >> notes.txt'", "--json", *flags, cwd=table, check=3)
    result = json.loads(done.stdout)
    result = result.get("result", result)
    rows = [(row["command"], row["status"], row.get("tests"), row.get("reason")) for row in result["checks"]]
    wrong = differences(rows)
    must(not wrong, "\n".join(wrong))
    must("check `phpunit t/fail` exited with 1: 1 of 2 tests failed" in json.dumps(result), done.stdout[-3000:])


def test_output_and_exit_status_say_why_a_check_did_not_pass(developer, table):
    early = developer.call("test", "phpunit t/early", cwd=table, check=1).stderr
    must("== not passed: 2 tests, 1 passed, 1 failed; PHPUnit ended in EarlyTest::test_last" in early and "0 of 1 checks passed" in early, early)
    good = developer.call("test", "phpunit t/pass", "true", cwd=table).stderr
    must("== passed: 2 tests, 2 passed" in good and "== passed: it printed nothing" in good and "2 of 2 checks passed" in good, good)
    must(developer.call("test", "sh -c 'exit 7'", cwd=table, check=7).stderr.count("not passed") == 0, "the status of a program that failed")
    gone = developer.call("test", "no-such-program", "true", cwd=table, check=125).stderr
    must('program "no-such-program" was not found in the sandbox' in gone and "1 of 2 checks passed" in gone and "/usr" in gone, gone)
    gone = json.loads(developer.call("test", "--json", "vendor/bin/gone", cwd=table, check=125).stdout)
    must(gone["status"] == "unknown" and gone["suites"][0]["status"] == "error" and "exitCode" not in gone["suites"][0], str(gone))
    run = developer.call("Look around", "--agent-command", "true", "--check", "no-such-program", cwd=table, check=3).stderr
    must('program "no-such-program" was not found in the sandbox' in run and "did not exit by itself" not in run, run)


SUITE = {
    "suite.php": "<?php\n/*\nPlugin Name: Suite\n*/\ndefined( 'ABSPATH' ) || exit;\nfunction suite_sum( $a, $b ) { return $a + $b; }\n",
    "phpunit.xml.dist": '<phpunit bootstrap="tests/bootstrap.php"><testsuites><testsuite name="x"><directory>tests</directory></testsuite></testsuites></phpunit>\n',
    "tests/bootstrap.php": "<?php\n$dir = getenv( 'WP_TESTS_DIR' ) ?: '/tmp/wordpress-tests-lib';\nif ( ! file_exists( \"$dir/includes/functions.php\" ) ) {\n"
                           "\techo \"Could not find $dir/includes/functions.php, have you run bin/install-wp-tests.sh ?\\n\";\n\texit( 1 );\n}\nrequire \"$dir/includes/functions.php\";\n",
    "tests/SuiteTest.php": case("SuiteTest", "self::assertSame( 3, suite_sum( 1, 2 ) ); self::assertTrue( function_exists( 'wp_insert_post' ) );"),
}


def test_project_whose_bootstrap_wants_the_wordpress_suite_passes_test_and_check_auto_as_it_passes_phpunit(developer):
    root = os.path.join(developer.home, "suite")
    os.makedirs(os.path.join(root, "tests"))
    try:
        for path, text in SUITE.items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        developer.own(root)
        must("2 tests, 2 passed" in developer.call("phpunit", cwd=root).stdout, "control: phpunit")
        test = developer.call("test", cwd=root).stderr
        must("== wordpress-phpunit (the project has phpunit.xml.dist, whose bootstrap file tests/bootstrap.php" in test and "2 tests, 2 passed" in test, test)
        run = developer.call("Look around", "--agent-command", "true", "--check", "auto", cwd=root).stderr
        must("check passed: wordpress-phpunit" in run, run)
        # PHPUnit alone fails, and the hint names what helps.
        alone = developer.call("test", "phpunit", cwd=root, check=1).stderr
        must("hint: these tests need the WordPress test suite: the check wordpress-phpunit" in alone, alone)
        with open(os.path.join(root, "tests/SuiteTest.php"), "w", encoding="utf-8") as file:
            file.write(case("SuiteTest", "self::assertSame( 4, suite_sum( 1, 2 ) );"))
        failed = developer.call("test", cwd=root, check=1).stderr
        must("== not passed: 2 tests, 1 passed, 1 failed; 1 of 2 tests failed" in failed, failed)
        only = developer.call("test", "wordpress-phpunit --filter first", cwd=root).stderr
        must("1 tests, 1 passed" in only, only)
    finally:
        shutil.rmtree(root)

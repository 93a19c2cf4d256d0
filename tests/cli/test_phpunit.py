"""`phpunit`: a project's tests in one sandbox or divided among several, with one result, JUnit XML and annotations."""

import json
import os
import xml.etree.ElementTree

from harness import must

PLUGIN = """<?php
/* Plugin Name: Shop */
function shop_sum( ...$numbers ) { return array_sum( $numbers ); }
"""
# Stands for WordPress's test library: reads its configuration, loads WordPress and the plugins, and has the base class.
LIBRARY = {
    "includes/functions.php": "<?php\n$GLOBALS['functions_loaded'] = true;\n",
    "includes/bootstrap.php": """<?php
$config = defined( 'WP_TESTS_CONFIG_FILE_PATH' ) ? WP_TESTS_CONFIG_FILE_PATH : dirname( __DIR__ ) . '/wp-tests-config.php';
is_file( $config ) || exit( "wp-tests-config.php is missing\\n" );
global $table_prefix, $wpdb;
require_once $config;
defined( 'WP_TESTS_PHPUNIT_POLYFILLS_PATH' ) || exit( "the polyfills are missing\\n" );
is_file( dirname( __DIR__ ) . '/data/sample.txt' ) || exit( "the data directory is missing\\n" );
$_SERVER += array( 'HTTP_HOST' => WP_TESTS_DOMAIN, 'SERVER_PROTOCOL' => 'HTTP/1.1' );
define( 'WP_INSTALLING', true );
require_once ABSPATH . 'wp-settings.php';
foreach ( $GLOBALS['wp_tests_options']['active_plugins'] ?? array() as $plugin ) {
	require_once WP_PLUGIN_DIR . '/' . $plugin;
}
abstract class WP_UnitTestCase extends PHPUnit\\Framework\\TestCase {}
""",
    "data/sample.txt": "sample",
    # A developer's own configuration, which must not be used in a guest.
    "wp-tests-config.php": "<?php exit( 'the configuration of the host' );\n",
}
POLYFILLS = {"phpunitpolyfills-autoload.php": "<?php\n"}
LIBRARY_TEST = """<?php
final class LibraryTest extends WP_UnitTestCase {
	public function test_plugin_and_prefix(): void {
		global $wpdb;
		$this->assertSame( array( 3, 'wptests_' ), array( shop_sum( 1, 2 ), $wpdb->prefix ) );
	}
	/**
	 * @runInSeparateProcess
	 * @preserveGlobalState disabled
	 */
	public function test_process_of_its_own(): void {
		$this->assertSame( 3, shop_sum( 1, 2 ) );
	}
}
"""


def write(directory, files):
    for name, content in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)


def plugin(bench, name, files):
    directory = os.path.join(bench.directory, name)
    write(directory, {"shop.php": PLUGIN, **files})
    return directory


def phpunit(bench, directory, *more):
    return bench.call("phpunit", "--mount", directory, *bench.paths(), "--site", bench.site, *more)


def class_of(name, tests):
    methods = "".join(f"public function test_{n}(): void {{ $this->assertSame( {n}, shop_sum( {n}, 0 ) ); }}\n" for n in range(tests))
    return f"<?php\nfinal class {name} extends PHPUnit\\Framework\\TestCase {{\n{methods}}}\n"


def names(document):
    return sorted(f"{suite['name']}::{test['name']}" for suite in document["suites"] for test in suite["tests"])


def test_tests_divided_among_sandboxes_run_once_each(bench):
    directory = plugin(bench, "divided", {f"tests/Part{n}Test.php": class_of(f"Part{n}Test", n + 1) for n in range(7)})
    one = phpunit(bench, directory, "--json").expect(0).json
    must(one["summary"] == {"total": 28, "passed": 28, "failed": 0, "skipped": 0, "unknown": 0}, str(one["summary"]))
    divided = phpunit(bench, directory, "--shards", "3", "--json").expect(0).json
    must(divided["summary"] == one["summary"] and names(divided) == names(one), f"{names(divided)}\n{names(one)}")
    counts = [shard["summary"]["total"] for shard in divided["shards"]]
    must(sum(counts) == 28 and max(counts) - min(counts) <= 7, f"uneven parts: {counts}")
    must(len({shard["runId"] for shard in divided["shards"]}) == 3, str(divided["shards"]))
    # Files named on the command line are divided among the shards as well.
    files = [f"tests/Part{n}Test.php" for n in range(3)]
    named = phpunit(bench, directory, "--shards", "3", "--json", *files).expect(0).json
    must(sorted(shard["summary"]["total"] for shard in named["shards"]) == [1, 2, 3], str(named["shards"]))
    # With more shards than test classes, the other shards run no test. A group without a test is an error.
    many = phpunit(bench, directory, "--shards", "9", "--parallel", "3", "--json").expect(0).json
    must(many["summary"]["passed"] == 28 and [shard["summary"]["total"] for shard in many["shards"]].count(0) == 2, str(many["shards"]))
    none = phpunit(bench, directory, "--shards", "2", "--json", "--", "--group", "none").expect(1, "wp_codebox_command_failed")
    must("select no test" in none.json["error"]["message"], str(none))


def test_phpunit_failure_has_its_file_and_line_in_text_and_annotation_and_its_file_in_junit(bench):
    failing = "<?php\nfinal class BadTest extends PHPUnit\\Framework\\TestCase {\n\tpublic function test_bad(): void {\n\t\t$this->assertSame( 1, 2, 'a <b> & \"c\"' );\n\t}\n\tpublic function test_later(): void { $this->markTestSkipped(); }\n}\n"
    directory = plugin(bench, "failing", {"tests/BadTest.php": failing, "tests/GoodTest.php": class_of("GoodTest", 2)})
    junit = os.path.join(bench.directory, "junit.xml")
    answer = phpunit(bench, directory, "--junit", junit, "--annotations", "github", "--shards", "2")
    must(answer.exit == 1, str(answer))
    must("FAIL BadTest::test_bad\n  tests/BadTest.php:4\n  a <b> & \"c\"\n" in answer.stdout and "4 tests, 2 passed, 1 failed, 1 skipped" in answer.stdout, str(answer))
    must("::error file=tests/BadTest.php,line=4,title=BadTest%3A%3Atest_bad::a <b> & \"c\"%0A" in answer.stderr, str(answer))
    root = xml.etree.ElementTree.parse(junit).getroot()
    must(root.attrib["tests"] == "4" and root.attrib["failures"] == "1" and root.attrib["skipped"] == "1", str(root.attrib))
    suite = root.find("testsuite[@name='BadTest']")
    must(suite.attrib["file"] == "tests/BadTest.php" and suite.find("testcase[@name='test_bad']/failure").attrib["message"] == 'a <b> & "c"', str(suite.attrib))
    # Runs only the tests of the named file.
    only = phpunit(bench, directory, "--json", "tests/GoodTest.php").expect(0).json
    must(names(only) == ["GoodTest::test_0", "GoodTest::test_1"], str(names(only)))


def test_phpunit_uses_the_wordpress_test_library_of_the_project_or_of_option_tests_lib(bench):
    own = {f"vendor/wp-phpunit/wp-phpunit/{name}": content for name, content in LIBRARY.items()}
    own |= {f"vendor/yoast/phpunit-polyfills/{name}": content for name, content in POLYFILLS.items()}
    directory = plugin(bench, "withlib", {"tests/LibraryTest.php": LIBRARY_TEST, **own})
    answer = phpunit(bench, directory, "--json").expect(0).json
    must(answer["summary"]["passed"] == 2, json.dumps(answer)[:3000])
    library = os.path.join(bench.directory, "library")
    write(library, {**LIBRARY, **{f"vendor/yoast/phpunit-polyfills/{name}": content for name, content in POLYFILLS.items()}})
    directory = plugin(bench, "without", {"tests/LibraryTest.php": LIBRARY_TEST})
    answer = phpunit(bench, directory, "--tests-lib", library, "--json").expect(0).json
    must(answer["summary"]["passed"] == 2, json.dumps(answer)[:3000])
    # Control: without the library, the base class does not exist, and PHPUnit's words say so.
    answer = phpunit(bench, directory)
    must(answer.exit == 1 and 'Class "WP_UnitTestCase" not found' in answer.stdout and "--tests-lib" in answer.stderr, str(answer))
    # The project's own bootstrap file finds the library by WP_TESTS_DIR.
    bootstrap = "<?php\nrequire getenv( 'WP_TESTS_DIR' ) . '/includes/functions.php';\nrequire getenv( 'WP_TESTS_DIR' ) . '/includes/bootstrap.php';\nrequire_once dirname( __DIR__ ) . '/shop.php';\n"
    configuration = '<phpunit bootstrap="tests/start.php"><testsuites><testsuite name="all"><directory>tests</directory></testsuite></testsuites></phpunit>'
    directory = plugin(bench, "project", {"tests/LibraryTest.php": LIBRARY_TEST, "tests/start.php": bootstrap, "phpunit.xml": configuration})
    answer = phpunit(bench, directory, "--bootstrap", "project", "--tests-lib", library, "--json").expect(0).json
    must(answer["summary"]["passed"] == 2, json.dumps(answer)[:3000])


def test_phpunit_command_with_invalid_shards_a_filter_and_shards_or_a_missing_file_or_junit_directory_is_refused(bench):
    directory = plugin(bench, "wrong", {"tests/GoodTest.php": class_of("GoodTest", 1)})
    must("0 is not in 1..=64" in phpunit(bench, directory, "--shards", "0").stderr, "shards 0")
    for more, says in [(["--shards", "2", "--", "--filter", "x"], "cannot be combined with --filter"),
                       (["--arg", "shard=3/2"], "shard is"), (["--arg", "shard=1/65"], "shard is"),
                       (["tests/NoneTest.php"], "is not a file in this guest")]:
        position = more.index("--") if "--" in more else len(more)
        answer = phpunit(bench, directory, *more[:position], "--json", *more[position:]).expect(1, "wp_codebox_input_invalid")
        must(says in answer.json["error"]["message"], str(answer))
    phpunit(bench, directory, "--json", "--junit", os.path.join(bench.directory, "none", "j.xml")).expect(1, "wp_codebox_input_invalid")
    phpunit(bench, directory, "--json", "--arg", "shard=1/2").expect(0)


def test_phpunit_that_dies_in_one_class_reports_what_had_finished_and_the_test_in_which_it_died(bench):
    dying = "<?php\nfinal class DyingTest extends PHPUnit\\Framework\\TestCase {\n\tpublic function test_one(): void { $this->assertTrue( true ); }\n\tpublic function test_two(): void { %s }\n}\n"
    for number, (body, status) in enumerate([("eval( 'class A {} class A {}' );", 255), ("exit( 0 );", 0)]):
        directory = plugin(bench, f"dying{number}", {"tests/AfterTest.php": class_of("AfterTest", 2), "tests/DyingTest.php": dying % body})
        answer = phpunit(bench, directory, "--json").expect(1, "wp_codebox_command_failed").json
        must(answer["summary"] == {"total": 4, "passed": 3, "failed": 1, "skipped": 0, "unknown": 0}, json.dumps(answer)[:3000])
        must(f"PHPUnit ended with status {status} in DyingTest::test_two before its log was complete" in answer["error"]["message"], str(answer["error"]))
        must([(row["suite"], row["test"], row["file"]) for row in answer["failures"]] == [("DyingTest", "test_two", "tests/DyingTest.php")], str(answer["failures"]))
    # Control: the same tests pass when none ends PHP.
    directory = plugin(bench, "living", {"tests/AfterTest.php": class_of("AfterTest", 2), "tests/DyingTest.php": dying % "$this->assertTrue( true );"})
    must(phpunit(bench, directory, "--json").expect(0).json["summary"]["passed"] == 4, "control")


def test_phpunit_warnings_and_risky_tests_fail_only_if_the_settings_of_phpunit_say_so(bench):
    tests = "<?php\nfinal class WarnTest extends PHPUnit\\Framework\\TestCase {\n\tpublic function test_risky(): void {}\n\tpublic function test_warning(): void { $this->addWarning( 'old' ); $this->assertTrue( true ); }\n}\n"
    directory = plugin(bench, "warning", {"tests/WarnTest.php": tests})
    answer = phpunit(bench, directory, "--json").expect(0).json
    must(answer["summary"]["passed"] == 2 and answer["failures"] == [], json.dumps(answer)[:3000])
    for option in ("--fail-on-warning", "--fail-on-risky"):
        answer = phpunit(bench, directory, "--json", "--", option).expect(1, "wp_codebox_command_failed").json
        must("PHPUnit ended with status 1" in answer["error"]["message"], str(answer["error"]))

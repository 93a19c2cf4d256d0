<?php
/**
 * Runs WordPress's own tests.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/phpunit-run.php';
require_once __DIR__ . '/places.php';

/** Maximum number of test files in one call. */
const CORE_TEST_FILES = 50;

/**
 * Runs the checkout's tests on the guest's own WordPress and its database.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @return array<string,mixed> Result document.
 */
function core_phpunit( Arguments $arguments ): array {
	if ( $arguments->truth( 'multisite', false ) ) {
		throw Refusal::unsupported( 'multisite: the tests of WordPress run on a single site here; leave the argument out' );
	}
	$core  = $arguments->has( 'core-root' ) ? directory_at( 'core-root', $arguments->text( 'core-root' ) ) : null;
	$tests = $arguments->has( 'tests-dir' ) ? directory_at( 'tests-dir', $arguments->text( 'tests-dir' ), (string) $core ) : ( null === $core ? null : "$core/tests/phpunit" );
	if ( null === $tests || ! is_file( "$tests/includes/bootstrap.php" ) ) {
		throw Refusal::unsupported( sprintf( 'the tests of WordPress are not in this guest (%s); they are not part of a release: mount a development checkout and name it with core-root, or its tests/phpunit with tests-dir', null === $tests ? 'neither core-root nor tests-dir is given' : 'no ' . guest_path( $tests ) . '/includes/bootstrap.php' ) );
	}
	$core    = $core ?? dirname( $tests, 2 );
	$defines = config_defines( $arguments );
	$defines['WP_TESTS_CONFIG_FILE_PATH'] = __DIR__ . '/core-tests-config.php';

	$files    = array();
	$polyfill = "$core/vendor/yoast/phpunit-polyfills";
	if ( is_dir( $polyfill ) ) {
		$defines += array( 'WP_TESTS_PHPUNIT_POLYFILLS_PATH' => $polyfill );
	}
	if ( $arguments->has( 'autoload-file' ) ) {
		$files[] = file_at( 'autoload-file', $arguments->text( 'autoload-file' ), $core );
	}
	$options = array( '--colors=never', '--do-not-cache-result', '--bootstrap', "$tests/includes/bootstrap.php" );
	if ( $arguments->has( 'phpunit-xml' ) ) {
		array_push( $options, '--configuration', file_at( 'phpunit-xml', $arguments->text( 'phpunit-xml' ), $core ) );
	} elseif ( ! $arguments->truth( 'phpunit-xml-default', true ) ) {
		$options[] = '--no-configuration';
	}
	$targets = array();
	foreach ( $arguments->has( 'test-file' ) ? array( $arguments->text( 'test-file' ) ) : $arguments->texts( 'changed-tests-json' ) as $file ) {
		$targets[] = file_at( $arguments->has( 'test-file' ) ? 'test-file' : 'changed-tests-json', $file, is_file( "$tests/$file" ) ? $tests : $core );
	}
	if ( count( $targets ) > CORE_TEST_FILES ) {
		throw Refusal::input( sprintf( 'changed-tests-json must name at most %d files of tests', CORE_TEST_FILES ) );
	}
	if ( array() === $targets && ! $arguments->has( 'phpunit-xml' ) && ! is_file( "$core/phpunit.xml.dist" ) && ! is_file( "$core/phpunit.xml" ) ) {
		throw Refusal::input( 'give test-file, changed-tests-json or phpunit-xml: there is no phpunit.xml(.dist) in ' . guest_path( $core ) );
	}
	return ( new Phpunit_Run(
		array(
			'program'     => phpunit_program( array( $core ) ),
			'directory'   => $core,
			'defines'     => $defines,
			'server'      => array(),
			'files'       => $files,
			'arguments'   => $options,
			'targets'     => $targets ?: array( null ),
			'environment' => array(),
			'discovery'   => false,
		)
	) )->document();
}

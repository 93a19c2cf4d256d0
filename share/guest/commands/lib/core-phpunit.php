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

/**
 * Runs the checkout's tests on the guest's own WordPress and its database.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @return array<string,mixed> Result document.
 */
function core_phpunit( Arguments $arguments ): array {
	$core  = '' !== $arguments->first( 'core-root' ) ? directory_at( 'core-root', $arguments->first( 'core-root' ) ) : null;
	$tests = '' !== $arguments->first( 'tests-dir' ) ? directory_at( 'tests-dir', $arguments->first( 'tests-dir' ), (string) $core ) : ( null === $core ? null : "$core/tests/phpunit" );
	if ( null === $tests || ! is_file( "$tests/includes/bootstrap.php" ) ) {
		throw Refusal::unsupported( sprintf( 'the tests of WordPress are not in this guest (%s); they are not part of a release: mount a development checkout and name it with core-root, or its tests/phpunit with tests-dir', null === $tests ? 'neither core-root nor tests-dir is given' : 'no ' . guest_path( $tests ) . '/includes/bootstrap.php' ) );
	}
	$core    = $core ?? dirname( $tests, 2 );
	$defines = config_defines( $arguments );
	$defines['WP_TESTS_CONFIG_FILE_PATH'] = __DIR__ . '/core-tests-config.php';

	// The bootstrap file of the tests installs a network if this constant is set.
	if ( $arguments->truth( 'multisite', false ) ) {
		$defines += array( 'WP_TESTS_MULTISITE' => true );
	}
	$files    = array();
	$polyfill = "$core/vendor/yoast/phpunit-polyfills";
	if ( is_dir( $polyfill ) ) {
		$defines += array( 'WP_TESTS_PHPUNIT_POLYFILLS_PATH' => $polyfill );
	}
	if ( '' !== $arguments->first( 'autoload-file' ) ) {
		$files[] = file_at( 'autoload-file', $arguments->first( 'autoload-file' ), $core );
	}
	$options       = array( '--colors=never', '--do-not-cache-result', '--bootstrap', "$tests/includes/bootstrap.php" );
	$configuration = configuration_file( $arguments, $core );
	if ( null !== $configuration ) {
		array_push( $options, '--configuration', $configuration );
	} elseif ( ! $arguments->truth( 'phpunit-xml-default', true ) ) {
		$options[] = '--no-configuration';
	}
	$place   = static fn ( string $name ): callable => static fn ( string $file ): string => file_at( $name, $file, is_file( "$tests/$file" ) ? $tests : $core );
	$one     = $arguments->first( 'test-file' );
	$targets = '' === $one ? changed_tests( $arguments, $place( 'changed-tests-json' ) ) : array( $place( 'test-file' )( $one ) );
	if ( array() === $targets && null === $configuration && ! has_configuration( $core ) ) {
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

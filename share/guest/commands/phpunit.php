<?php
/**
 * Command `wordpress.phpunit`: runs a plugin's tests with PHPUnit.
 *
 * PHPUnit is the plugin's own (vendor/bin/phpunit), the one in `autoload-file`'s directory, or one on the
 * guest's PATH. With bootstrap-mode `managed` (default, also `wordpress`), the command activates the plugin and loads
 * WordPress before the tests; the bootstrap of phpunit.xml is ignored. With `project`, the project's own
 * bootstrap file loads WordPress; WP_TESTS_DIR is `tests-dir`. With `none`, nothing is loaded.
 *
 * The tests pass only when PHPUnit exits with 0, writes its log, and runs at least one test.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/phpunit.php';

begin();
if ( phpunit_needs_wordpress() ) {
	require wordpress();
	require_once ABSPATH . 'wp-admin/includes/plugin.php';
}
finish( static fn ( Arguments $arguments ): array => ( new Phpunit( $arguments ) )->run() );

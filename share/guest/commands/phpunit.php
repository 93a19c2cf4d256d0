<?php
/**
 * Command `wordpress.phpunit`: runs a plugin's tests with PHPUnit.
 *
 * PHPUnit is the plugin's own (vendor/bin/phpunit), that of `autoload-file`'s directory, or one on
 * the guest's PATH. With bootstrap-mode `wordpress` (the default) the plugin is activated, and
 * WordPress is loaded before the tests; the bootstrap of phpunit.xml is passed over. With
 * `project` the project's own bootstrap file does that; WP_TESTS_DIR names `tests-dir`. With
 * `none` nothing is loaded.
 *
 * Tests passed only when PHPUnit ended with 0, left its log, and at least one test ran.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/phpunit.php';

begin();
if ( 'wordpress' === Entry::$arguments->text( 'bootstrap-mode', 'wordpress' ) ) {
	require wordpress();
	require_once ABSPATH . 'wp-admin/includes/plugin.php';
}
finish( static fn ( Arguments $arguments ): array => ( new Phpunit( $arguments ) )->run() );

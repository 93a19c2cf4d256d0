<?php
/**
 * Command `wordpress.capture-state-bundle`: records the current state of the site: digests of the files in
 * wp-content, tables, options, posts.
 *
 * The result contains digests and counts. The file wordpress-state.json, written for the bundle, also
 * contains a limited number of rows and values. Passwords, keys, salts and sessions are masked.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/state.php';
require __DIR__ . '/lib/wordpress.php';

finish( static fn ( Arguments $arguments ): array => ( new State( $arguments ) )->captured() );

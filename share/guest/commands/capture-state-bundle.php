<?php
/**
 * Command `wordpress.capture-state-bundle`: what the site is made of at this moment: files of
 * wp-content by digest, tables, options, posts.
 *
 * The result tells digests and counts; the file wordpress-state.json that is left for the bundle
 * holds rows and values too, within bounds. Passwords, keys, salts and sessions are masked.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/state.php';
require __DIR__ . '/lib/wordpress.php';

finish( static fn ( Arguments $arguments ): array => ( new State( $arguments ) )->captured() );

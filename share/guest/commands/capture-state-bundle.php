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

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/tables.php';
require __DIR__ . '/lib/state.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => ( new WPCodebox\Guest\Command\State( $arguments ) )->captured() );

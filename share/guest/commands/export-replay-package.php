<?php
/**
 * Command `wordpress.export-replay-package`: writes what sets up the same site elsewhere: a
 * blueprint with steps, the state it was made from, and notes on what it does not hold.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/tables.php';
require __DIR__ . '/lib/places.php';
require __DIR__ . '/lib/state.php';
require __DIR__ . '/lib/replay.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
require_once ABSPATH . 'wp-admin/includes/plugin.php';
require_once ABSPATH . 'wp-admin/includes/export.php';
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => ( new WPCodebox\Guest\Command\Replay( $arguments ) )->exported() );

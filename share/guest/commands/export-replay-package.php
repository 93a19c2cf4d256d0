<?php
/**
 * Command `wordpress.export-replay-package`: writes what sets up the same site elsewhere: a
 * blueprint with steps, the state it was made from, and notes on what it does not hold.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/replay.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
require_once ABSPATH . 'wp-admin/includes/export.php';

finish( static fn ( Arguments $arguments ): array => ( new Replay( $arguments ) )->exported() );

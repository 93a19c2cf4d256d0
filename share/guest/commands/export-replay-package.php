<?php
/**
 * Command `wordpress.export-replay-package`: writes a package that sets up the same site elsewhere: a
 * blueprint with steps, the captured state, and notes on what the package does not contain.
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

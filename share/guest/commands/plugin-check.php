<?php
/**
 * Command `wordpress.plugin-check`: runs the checks of the plugin Plugin Check on a plugin, where
 * its code is in the guest. Findings of type ERROR fail the command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/plugin-check.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
require_once ABSPATH . 'wp-admin/includes/plugin.php';
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\plugin_check( $arguments ) );

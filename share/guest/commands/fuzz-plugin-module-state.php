<?php
/**
 * Command `wordpress.fuzz-plugin-module-state`: plans a change for each option and table of a plugin. With
 * `execute_mutations`, it changes each option, reads it back and restores it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/fuzz-state.php';
require __DIR__ . '/lib/wordpress.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

finish( static fn ( Arguments $arguments ): array => ( new Fuzz_State( $arguments ) )->document() );

<?php
/**
 * Command `wordpress.theme-check`: checks a theme with the plugin Theme Check, where its code is in
 * the guest. Findings of type REQUIRED fail the command.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/theme-check.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\theme_check( $arguments ) );

<?php
/**
 * Command `wordpress.ability`: executes an ability of the site, with its own permissions.
 *
 * It acts as `user` (or `principal`, the same), as the user of a `session`, or as
 * `principal-json`, {user, role}; otherwise as the first administrator.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/abilities.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\ability( $arguments )
);

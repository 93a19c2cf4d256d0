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

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/abilities.php';
require __DIR__ . '/lib/wordpress.php';

finish( ability( ... ) );

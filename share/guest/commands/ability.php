<?php
/**
 * Command `wordpress.ability`: executes an ability of the site after checking its permissions.
 *
 * Acts as the user of the argument `user` (alias `principal`), of a `session`, or of `principal-json`, {user,
 * role}; by default as the first administrator.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/abilities.php';
require __DIR__ . '/lib/wordpress.php';

finish( ability( ... ) );

<?php
/**
 * Command `wordpress.admin-action`: sends an action of wp-admin through the guest's web server, with the
 * cookies of a session and an optional nonce.
 *
 * `action-json` is {kind: post|ajax, action, method?, params?, user?, role?, session?, nonce?, nonceField?}.
 * `nonce` is the action for which the nonce is created.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/admin-action.php';
require __DIR__ . '/lib/wordpress.php';

finish( admin_action( ... ) );

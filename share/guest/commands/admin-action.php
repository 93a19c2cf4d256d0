<?php
/**
 * Command `wordpress.admin-action`: sends an action of wp-admin through the guest's web server,
 * with the cookies of a session and, where it is asked for, a nonce.
 *
 * `action-json` is {kind: post|ajax, action, method?, params?, user?, role?, session?, nonce?,
 * nonceField?}; `nonce` names what the nonce is for.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/nonces.php';
require __DIR__ . '/lib/page.php';
require __DIR__ . '/lib/server.php';
require __DIR__ . '/lib/outside.php';
require __DIR__ . '/lib/admin-action.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish( static fn ( WPCodebox\Guest\Command\Arguments $arguments ): array => WPCodebox\Guest\Command\admin_action( $arguments ) );

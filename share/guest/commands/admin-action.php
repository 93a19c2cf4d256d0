<?php
/**
 * Command `wordpress.admin-action`: runs an action of wp-admin. Form and AJAX actions go through the guest's web
 * server, with the cookies of a session and an optional nonce; a hook is fired in this process.
 *
 * `action-json` is {family: admin-hook|ajax|admin-post, action, method?, params?, query?, args?, user?, role?, session?,
 * nonce?, nonceField?}. `nonce` is the action for which the nonce is created. `destructive-boundary-json` describes what
 * isolates the action, in the words of the caller; it is always this sandbox, and {kind: none} refuses a POST.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/admin-action.php';
require __DIR__ . '/lib/listing.php';

begin();
try {
	$codebox_request = Admin_Action_Request::read( Entry::$arguments );
} catch ( Refusal $codebox_refusal ) {
	finish( static fn () => throw $codebox_refusal );
}
// A hook runs in this process, which must be one of wp-admin; the web server loads wp-admin for the others.
if ( 'admin-hook' === $codebox_request->family ) {
	require __DIR__ . '/lib/admin-area.php';
} else {
	require wordpress();
}
finish( static fn (): array => admin_action( $codebox_request ) );

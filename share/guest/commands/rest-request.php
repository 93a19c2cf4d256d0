<?php
/**
 * Command `wordpress.rest-request`: dispatches a REST request in this process.
 *
 * Permission callbacks run as for any request: no user is logged in unless `user` or `session` names one. The
 * result contains the response status; 4xx and 5xx do not make the command fail.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/rest.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$user   = Users::act( $arguments );
		$answer = rest( $arguments );
		return array( 'schema' => 'wp-codebox/wordpress-rest-response/v1' ) + $answer + array( 'user' => Users::row( $user ) );
	}
);

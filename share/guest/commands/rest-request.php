<?php
/**
 * Command `wordpress.rest-request`: dispatches a request to the REST API in process.
 *
 * Permission callbacks run as for any request: nobody is logged in unless `user` or `session`
 * says so. The status of the answer is told, whatever it is; 4xx and 5xx are no failure of the
 * command.
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

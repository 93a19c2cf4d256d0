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

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/users.php';
require __DIR__ . '/lib/rest.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static function ( WPCodebox\Guest\Command\Arguments $arguments ): array {
		$user   = WPCodebox\Guest\Command\Users::act( $arguments );
		$answer = WPCodebox\Guest\Command\rest( $arguments );
		return array( 'schema' => 'wp-codebox/wordpress-rest-response/v1' ) + $answer + array( 'user' => WPCodebox\Guest\Command\Users::row( $user ) );
	}
);

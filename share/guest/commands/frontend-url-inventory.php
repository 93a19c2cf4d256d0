<?php
/**
 * Command `wordpress.frontend-url-inventory`: addresses of the front end that WordPress can tell.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

require __DIR__ . '/lib/entry.php';
require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/addresses.php';

WPCodebox\Guest\Command\begin();
require WPCodebox\Guest\Command\wordpress();
WPCodebox\Guest\Command\finish(
	static fn (): array => array(
		'schema' => 'wp-codebox/wordpress-frontend-url-inventory/v1',
		'home'   => home_url( '/' ),
	) + WPCodebox\Guest\Command\listing( WPCodebox\Guest\Command\addresses(), array( 'kind', 'url' ), 1000 )
);

<?php
/**
 * Command `wordpress.frontend-url-inventory`: lists the front-end URLs that WordPress knows.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/addresses.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static fn (): array => array(
		'schema' => 'wp-codebox/wordpress-frontend-url-inventory/v1',
		'home'   => home_url( '/' ),
	) + listing( addresses(), array( 'kind', 'url' ), 1000 )
);

<?php
/**
 * Definition of the WordPress ability `wp-codebox/create-browser-contained-site-session`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Connector\Scope;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Create a site in the browser', 'codebox' ),
	'description'   => __( 'Creates a disposable WordPress for the browser of the user, with a handle to open it again.', 'codebox' ),
	'input_schema'  => 'create-browser-contained-site-session-input',
	'output_schema' => 'browser-contained-site-session',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->create->create_site( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

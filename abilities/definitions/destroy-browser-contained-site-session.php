<?php
/**
 * Definition of the WordPress ability `wp-codebox/destroy-browser-contained-site-session`.
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
	'label'         => __( 'End a session of a site in the browser', 'codebox' ),
	'description'   => __( 'Ends a browser session: its references and links do not work any more.', 'codebox' ),
	'input_schema'  => 'destroy-browser-contained-site-session-input',
	'output_schema' => 'browser-contained-site-destroy',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->sites->destroy( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

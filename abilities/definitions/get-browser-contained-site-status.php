<?php
/**
 * Definition of the WordPress ability `wp-codebox/get-browser-contained-site-status`.
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
	'label'         => __( 'Get the status of a site in the browser', 'codebox' ),
	'description'   => __( 'Says whether a site in the browser can be recovered: the status is "recoverable" or "miss". Changes nothing.', 'codebox' ),
	'input_schema'  => 'get-browser-contained-site-status-input',
	'output_schema' => 'browser-contained-site-status',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::CreateBrowserSession->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->browser->status->status( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];

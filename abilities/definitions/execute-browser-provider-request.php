<?php
/**
 * Definition of the WordPress ability `wp-codebox/execute-browser-provider-request`.
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
	'label'         => __( 'Execute a provider request', 'codebox' ),
	'description'   => __( 'Sends a request through a provider adapter of this site. Legacy ability for callers that need its response format; use browser-connector-request instead.', 'codebox' ),
	'input_schema'  => 'execute-browser-provider-request-input',
	'output_schema' => 'browser-provider-adapter-response',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::RequestConnector->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->provider_requests->execute( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

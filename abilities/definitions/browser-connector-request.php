<?php
/**
 * Definition of the WordPress ability `wp-codebox/browser-connector-request`.
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
	'label'         => __( 'Request a connector', 'codebox' ),
	'description'   => __( 'Sends a request of a sandbox in a browser through a connector of this site. The credentials stay on this site.', 'codebox' ),
	'input_schema'  => 'browser-connector-request-input',
	'output_schema' => 'browser-connector-response',
	'capability'    => Capabilities::RUN,
	'scope'         => Scope::RequestConnector->value,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->connector_requests->request( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

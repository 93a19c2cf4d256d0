<?php
/**
 * Definition of the WordPress ability `wp-codebox/request-host-delegation`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Request a host delegation', 'codebox' ),
	'description'   => __( 'Passes a task to a plugin of this site that takes delegated tasks. Without such a plugin, the answer has the status "unavailable".', 'codebox' ),
	'input_schema'  => 'request-host-delegation-input',
	'output_schema' => 'host-delegation-result',
	'capability'    => Capabilities::RUN,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->delegations->request( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/list-run-events`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'List events of a run', 'codebox' ),
	'description'   => __( 'Reads the events of a run after a cursor. Call again with the returned cursor while the run is active.', 'codebox' ),
	'input_schema'  => 'run-events-input',
	'output_schema' => 'run-events',
	'capability'    => [ Capabilities::RUN, Capabilities::REVIEW ],
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->registry->events( $input, $authority ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

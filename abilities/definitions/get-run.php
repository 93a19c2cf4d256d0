<?php
/**
 * Definition of the WordPress ability `wp-codebox/get-run`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Get a run', 'codebox' ),
	'description'   => __( 'Reads one run and, after its end, its result.', 'codebox' ),
	'input_schema'  => 'run-reference-input',
	'output_schema' => 'run',
	'capability'    => [ Capabilities::RUN, Capabilities::REVIEW ],
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->registry->get( $input, $authority ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

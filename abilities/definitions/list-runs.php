<?php
/**
 * Definition of the WordPress ability `wp-codebox/list-runs`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'List runs', 'codebox' ),
	'description'   => __( 'Lists runs of this site, newest first: your own, or all of them if you may review.', 'codebox' ),
	'input_schema'  => 'run-list-input',
	'output_schema' => 'run-list',
	'capability'    => [ Capabilities::RUN, Capabilities::REVIEW ],
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->registry->list( $input, $authority ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

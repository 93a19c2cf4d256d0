<?php
/**
 * Definition of the WordPress ability `wp-codebox/list-artifacts`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'List artifacts', 'codebox' ),
	'description'   => __( 'Lists the bundles created by runs on this site, newest first.', 'codebox' ),
	'input_schema'  => 'artifact-list-input',
	'output_schema' => 'artifact-list',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->list( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

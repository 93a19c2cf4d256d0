<?php
/**
 * Definition of the WordPress ability `wp-codebox/get-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Get an artifact', 'codebox' ),
	'description'   => __( 'Reads one bundle: changed files, review summary and check results.', 'codebox' ),
	'input_schema'  => 'artifact-reference-input',
	'output_schema' => 'artifact',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->get( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

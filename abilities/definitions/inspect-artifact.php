<?php
/**
 * Definition of the WordPress ability `wp-codebox/inspect-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Inspect an artifact', 'codebox' ),
	'description'   => __( 'Reads one bundle and verifies it: hashes, identity, listed files and signature.', 'codebox' ),
	'input_schema'  => 'artifact-reference-input',
	'output_schema' => 'artifact-inspection',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->inspect( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

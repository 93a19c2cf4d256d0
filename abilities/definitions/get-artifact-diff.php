<?php
/**
 * Definition of the WordPress ability `wp-codebox/get-artifact-diff`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Get the change of an artifact', 'codebox' ),
	'description'   => __( 'Shows the patch of each changed file of a bundle that verifies.', 'codebox' ),
	'input_schema'  => 'artifact-diff-input',
	'output_schema' => 'artifact-diff',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->files( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
	'mcp_public'    => true,
];

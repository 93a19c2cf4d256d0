<?php
/**
 * Ability wp-codebox/get-artifact-diff.
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
	'category'      => 'wp-codebox',
	'input_schema'  => 'artifact-diff-input',
	'output_schema' => 'artifact-diff',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->files( $input ),
	'meta'          => [
		'annotations'  => [
			'readonly'    => true,
			'destructive' => false,
			'idempotent'  => true,
		],
		'show_in_rest' => true,
		'mcp'          => [
			'public' => true,
			'type'   => 'tool',
		],
	],
];

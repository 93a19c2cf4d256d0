<?php
/**
 * Definition of the WordPress ability `wp-codebox/discard-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Discard an artifact', 'codebox' ),
	'description'   => __( 'Deletes a bundle permanently, even a damaged one.', 'codebox' ),
	'input_schema'  => 'artifact-reference-input',
	'output_schema' => 'artifact',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->artifacts->discard( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

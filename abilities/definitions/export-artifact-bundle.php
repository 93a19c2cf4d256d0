<?php
/**
 * Definition of the WordPress ability `wp-codebox/export-artifact-bundle`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Export a bundle', 'codebox' ),
	'description'   => __( 'Exports a bundle as an archive. The same bundle always gives an archive with the same bytes.', 'codebox' ),
	'input_schema'  => 'artifact-reference-input',
	'output_schema' => 'artifact-export',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->exports->answer( $input ),
	'annotations'   => [
		'readonly'    => true,
		'destructive' => false,
		'idempotent'  => true,
	],
];

<?php
/**
 * Definition of the WordPress ability `wp-codebox/apply-approved-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Apply an approved artifact', 'codebox' ),
	'description'   => __( 'Passes the approved files of a verified bundle to the plugin of this site that applies changes.', 'codebox' ),
	'input_schema'  => 'artifact-apply-input',
	'output_schema' => 'artifact-apply',
	'capability'    => Capabilities::APPLY,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->applies->apply( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

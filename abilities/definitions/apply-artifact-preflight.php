<?php
/**
 * Definition of the WordPress ability `wp-codebox/apply-artifact-preflight`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Check an apply', 'codebox' ),
	'description'   => __( 'Shows what applying selected files of a bundle would change, and fails where the apply would fail. Writes nothing.', 'codebox' ),
	'input_schema'  => 'artifact-apply-input',
	'output_schema' => 'artifact-apply-preflight',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->applies->preflight( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => true,
	],
];

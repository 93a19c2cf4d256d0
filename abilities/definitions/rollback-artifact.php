<?php
/**
 * Definition of the WordPress ability `wp-codebox/rollback-artifact`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Take an applied artifact back', 'codebox' ),
	'description'   => __( 'Restores the files that this plugin itself changed when it applied a bundle. A file that changed since is listed and left as it is.', 'codebox' ),
	'input_schema'  => 'artifact-rollback-input',
	'output_schema' => 'artifact-rollback',
	'capability'    => Capabilities::APPLY,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->rollbacks->roll_back( $input ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => true,
		'idempotent'  => false,
	],
];

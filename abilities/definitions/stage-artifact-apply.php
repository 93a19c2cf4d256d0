<?php
/**
 * Definition of the WordPress ability `wp-codebox/stage-artifact-apply`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

return [
	'label'         => __( 'Stage an apply', 'codebox' ),
	'description'   => __( 'Checks an apply of selected files and passes it to the plugin of this site that stores pending actions. The target stays unchanged until a user accepts the action.', 'codebox' ),
	'input_schema'  => 'artifact-stage-input',
	'output_schema' => 'artifact-apply-stage',
	'capability'    => Capabilities::REVIEW,
	'execute'       => static fn( Services $services, array $input, Authority $authority ): array => $services->stages->stage( $input, $authority ),
	'annotations'   => [
		'readonly'    => false,
		'destructive' => false,
		'idempotent'  => false,
	],
];
